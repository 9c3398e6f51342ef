"""COSDISH against the similarity matrix, made in full."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.hashing.anchors import class_columns, random_signs
from deephash_pipeline.hashing.cosdish import solve_columns, solve_rows

CASE = {"seed": st.integers(0, 2**32), "code_length": st.integers(1, 6), "columns": st.integers(2, 12)}


def a_case(seed, code_length, columns):
    """Codes, one-hot labels, drawn rows and the similarity matrix of 20 rows of three classes."""
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(20) % 3)
    codes = random_signs((20, code_length), generator)
    drawn = generator.choice(20, columns, replace=False)
    return codes, class_columns(labels), drawn, np.where(np.equal.outer(labels, labels), 1.0, -1.0)


@settings(max_examples=50, deadline=None)
@given(**CASE)
def test_rows_outside_take_the_signs_of_the_balanced_product(seed, code_length, columns):
    codes, classes, drawn, similarity = a_case(seed, code_length, columns)
    outside = np.setdiff1d(np.arange(20), drawn)
    block = similarity[np.ix_(outside, drawn)]
    negative = (block > 0).sum() / (block < 0).sum()
    product = np.where(block > 0, 1.0, -negative) @ codes[drawn]
    expected = codes.copy()
    expected[outside] = np.where(np.abs(product) < 1e-9, codes[outside], np.sign(product))
    np.testing.assert_array_equal(solve_rows(codes, classes, drawn), expected)


@settings(max_examples=50, deadline=None)
@given(**CASE)
def test_codes_of_the_drawn_rows_come_nearer_to_the_similarities(seed, code_length, columns):
    codes, classes, drawn, similarity = a_case(seed, code_length, columns)

    def cost(given):
        # Of each bit with all others fixed; the diagonal says nothing.
        left = code_length * similarity[:, drawn] - given @ given[drawn].T
        left[drawn, np.arange(columns)] = 0
        return float((left**2).sum())

    solved = codes.copy()
    solved[drawn] = solve_columns(codes, classes, drawn)
    assert cost(solved) <= cost(codes) + 1e-6
    last = code_length - 1
    for row in drawn:
        flipped = solved.copy()
        flipped[row, last] *= -1
        assert cost(solved) <= cost(flipped) + 1e-6
