from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deephash_pipeline.retrieval.groups import TABULATED, harmonic_difference


@given(start=st.integers(0, 3 * TABULATED), terms=st.integers(0, 3 * TABULATED))
def test_a_harmonic_difference_equals_its_sum_of_fractions(start, terms):
    exact = sum((Fraction(1, t) for t in range(start + 1, start + terms + 1)), Fraction(0))
    difference = float(harmonic_difference(np.array(start), np.array(start + terms)))
    assert difference == pytest.approx(float(exact), rel=2e-15, abs=0)
