import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.hashing import ITQ


def slow_transcription(z, code_length, seed, iterations):
    """The authors' loop, element by element where that is bearable."""
    centred = z - z.mean(axis=0)
    variances, vectors = np.linalg.eigh(np.cov(centred.T))
    directions = vectors[:, np.argsort(-variances)[:code_length]]
    directions = directions * [np.sign(column[np.abs(column).argmax()]) for column in directions.T]
    components = centred @ directions
    rotation = np.linalg.svd(np.random.default_rng(seed).standard_normal((code_length, code_length)))[0]
    objective = []
    for iteration in range(iterations + 1):
        rotated = components @ rotation
        signs = np.array([[1.0 if value >= 0 else -1.0 for value in row] for row in rotated])
        objective.append(sum((sign - value) ** 2 for sign, value in zip(signs.flat, rotated.flat, strict=True)))
        if iteration < iterations:
            left, _, right = np.linalg.svd(signs.T @ components)
            rotation = right.T @ left.T
    return signs > 0, objective


def test_codes_and_objective_equal_those_of_a_slow_transcription(z):
    exact = z.astype(np.float64)
    codes, objective = slow_transcription(exact, 8, seed=4, iterations=10)
    hash_function = ITQ(8, random_state=4, iterations=10).fit(exact)
    np.testing.assert_allclose(hash_function.objective_, objective, rtol=1e-10)
    assert np.mean(hash_function.transform(exact) == codes) > 0.999


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), rows=st.integers(20, 80), features=st.integers(6, 15), code_length=st.integers(1, 6))
def test_the_objective_never_rises(seed, rows, features, code_length):
    z = np.random.default_rng(seed).normal(size=(rows, features)) * np.linspace(3.0, 0.1, features)
    objective = ITQ(code_length, random_state=seed).fit(z).objective_
    assert (np.diff(objective) <= 1e-9 * objective[0]).all()
