from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deephash_pipeline.retrieval.groups import TABULATED, harmonic_difference

SCALE = 10**40


@given(start=st.integers(0, 3 * TABULATED), terms=st.integers(0, 3 * TABULATED))
def test_a_harmonic_difference_equals_its_sum_of_fractions(start, terms):
    exact = sum((Fraction(1, t) for t in range(start + 1, start + terms + 1)), Fraction(0))
    difference = float(harmonic_difference(np.array(start), np.array(start + terms)))
    assert difference == pytest.approx(float(exact), rel=2e-15, abs=0)


def test_a_harmonic_difference_near_a_million_keeps_its_digits():
    exact = list(accumulate((SCALE // t for t in range(1, 1_000_001)), initial=0))
    start = np.array([0, 1, 63, 64, 65, 999, 999_990, 999_999, 500_000])
    stop = np.array([1_000_000, 1_000_000, 1_000_000, 65, 70, 1_000_000, 1_000_000, 1_000_000, 500_002])
    expected = [(exact[b] - exact[a]) / SCALE for a, b in zip(start, stop, strict=True)]
    np.testing.assert_allclose(harmonic_difference(start, stop), expected, rtol=2e-15)
