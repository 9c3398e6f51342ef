"""Spherical hashing against its steps, written out."""

import math

import numpy as np
import pytest

from deephash_pipeline.hashing import SphericalHashing
from deephash_pipeline.hashing.sph import balls, is_balanced, moved

ROWS = np.random.default_rng(4).normal(size=(400, 6))


@pytest.mark.parametrize("rows", [ROWS, ROWS[:399]], ids=len)
def test_a_ball_holds_half_of_the_rows_and_ends_between_two(rows):
    centres = ROWS[:5]
    inside, squared_radii = balls(rows, centres)
    for k in range(5):
        distances = sorted(math.dist(row, centres[k]) ** 2 for row in rows)
        assert squared_radii[k] == pytest.approx(np.mean(distances[199:201]), rel=1e-5)
    assert (inside.sum(axis=0) == 200).all()


def test_a_step_parts_balls_that_share_too_much():
    centres, overlap = ROWS[:3], np.array([[50.0, 40.0, 10.0], [40.0, 50.0, 25.0], [10.0, 25.0, 50.0]])
    expected = centres.copy()
    for i in range(3):
        for j in range(3):
            if i != j:
                expected[i] += 0.5 * (overlap[i, j] - 25) / 25 * (centres[i] - centres[j]) / 3
    np.testing.assert_allclose(moved(centres, overlap, 100), expected)


def test_balls_end_with_a_quarter_of_the_rows_in_common():
    fitted = SphericalHashing(6, random_state=1).fit(ROWS)
    inside = fitted.transform(ROWS)
    np.testing.assert_array_equal(inside.sum(axis=0), 200)
    assert is_balanced(inside.T.astype(float) @ inside, 400)
