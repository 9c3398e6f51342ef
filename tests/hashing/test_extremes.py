"""Features that are far from 0, very large or very small: the right codes, or one line."""

import warnings

import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing import AGH, HASH_FUNCTIONS, ITQ, KSH, SphericalHashing
from deephash_pipeline.retrieval import real_valued_metrics

LABELS = np.arange(240) % 4
# As float32 has it, also 10,000 away: no digit is lost by the input.
Z = (np.random.default_rng(0).normal(size=(240, 12)) + 3 * np.eye(4, 12)[LABELS]).round(2)


@pytest.mark.parametrize("name", [*HASH_FUNCTIONS])
@pytest.mark.parametrize(("factor", "message"), [(1e200, "has numbers up to"), (1e-200, "differs by .* at most")])
def test_what_has_no_room_is_refused_by_every_hash_function_before_it_computes(name, factor, message):
    with warnings.catch_warnings(), pytest.raises(InputError, match=message):
        warnings.simplefilter("error")
        HASH_FUNCTIONS[name](8).fit(Z * factor, LABELS)


def test_a_query_that_has_no_room_is_refused_too():
    with pytest.raises(InputError, match=r"numbers up to 8e\+200"):
        ITQ(8).fit(Z).transform(np.abs(Z) * 0 + 8e200)


@pytest.mark.parametrize("factor", [2.0**-90, 2.0**90])
def test_codes_do_not_depend_on_a_factor_that_has_room(factor):
    for function in (AGH(8, anchors=30), SphericalHashing(8), ITQ(8)):
        expected = function.fit(Z).transform(Z)
        np.testing.assert_array_equal(function.fit(Z * factor).transform(Z * factor), expected)


def test_anchors_do_not_depend_on_what_all_rows_share():
    near, far = (AGH(8, anchors=30).fit(Z + offset).transform(Z + offset) for offset in (0, 10_000))
    assert (near != far).mean() < 0.02


@pytest.mark.parametrize("function", [AGH(8, anchors=30), SphericalHashing(8), KSH(8)], ids=repr)
def test_what_single_precision_would_lose_is_refused(function):
    with pytest.raises(InputError, match=r"X differs by \d+ around 1e\+10, .* subtract its mean"):
        function.fit(Z + 1e10, LABELS)


@pytest.mark.parametrize(("offset", "factor"), [(1e8, 1), (0, 1e-200), (0, 1e200), (-3e12, 1)])
def test_real_valued_distances_do_not_depend_on_offset_and_scale(offset, factor):
    def metrics(z):
        return real_valued_metrics(z[:40], LABELS[:40], z[40:], LABELS[40:])["mean_average_precision"]

    assert metrics(Z * factor + offset) == pytest.approx(metrics(Z), abs=1e-6 if offset > -1e12 else 1e-3)
