"""Hash functions are scikit-learn estimators: its own checks, its pipelines, and input of any kind."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing import FSDH, HASH_FUNCTIONS, ITQ, KSH, SDH, FastHash
from tests.hashing.little_work import LITTLE_WORK

METHODS = list(HASH_FUNCTIONS.values())
ONE_FEATURE = {"check_fit2d_1feature": "each bit takes a direction of variance, and one feature has but one"}
A_DIRECTION_FOR_EACH_BIT = {
    HASH_FUNCTIONS[name]: ONE_FEATURE
    for name in ("pcah", "itq", "ldah", "liong_sdh", "sign", "median", "pca_rotation", "srh")
}


# Without labels, with labels, and with trees in place of hyperplanes; the others have the same base.
KINDS = (ITQ, KSH, FastHash)
OTHER_ENCODINGS = {method._outputs: method for method in METHODS if method not in KINDS}


def checks_of(methods):
    return parametrize_with_checks(
        [method(2, **LITTLE_WORK.get(method, {})) for method in methods],
        expected_failed_checks=lambda estimator: A_DIRECTION_FOR_EACH_BIT.get(type(estimator), {}),
    )


@checks_of(KINDS)
def test_the_checks_of_scikit_learn_pass(estimator, check):
    check(estimator)


@pytest.mark.complete
@checks_of(OTHER_ENCODINGS.values())
def test_the_checks_of_scikit_learn_pass_for_every_other_way_to_encode(estimator, check):
    check(estimator)


@pytest.mark.parametrize("method", A_DIRECTION_FOR_EACH_BIT)
def test_more_bits_than_features_are_refused_with_the_code_length(method):
    with pytest.raises(InputError, match=r"^code_length is 2, but "):
        method(2).fit(np.arange(10.0)[:, np.newaxis], np.arange(10) % 2)


@pytest.mark.parametrize("method", METHODS)
def test_lists_integers_and_frames_give_the_codes_of_the_same_numbers(method, z, labels, quick):
    whole = np.round(z * 4).astype(np.int64)
    names = np.array([f"class {label}" for label in labels])
    expected = quick(method, 12).fit(whole.astype(np.float64), labels).transform(whole)
    frame = pd.DataFrame(whole, columns=[f"z{column}" for column in range(20)])
    for X, y in ((whole, labels), (whole.tolist(), labels.tolist()), (frame, pd.Series(names)), (whole, names)):
        np.testing.assert_array_equal(quick(method, 12).fit(X, y).transform(X), expected)


@pytest.mark.parametrize("method", [SDH, FSDH])
def test_the_layout_of_an_array_changes_no_bit(method, z, labels, quick):
    expected = quick(method, 12).fit(z, labels).transform(z)
    for columns_first in (np.asfortranarray(z), pd.DataFrame(z)):
        codes = quick(method, 12).fit(columns_first, labels).transform(columns_first)
        np.testing.assert_array_equal(codes, expected)


@pytest.mark.parametrize("method", METHODS)
def test_a_memory_map_is_learned_from_in_place(method, z, labels, quick, tmp_path, monkeypatch):
    np.save(tmp_path / "z.npy", z)
    mapped = np.load(tmp_path / "z.npy", mmap_mode="r")
    learn, shared = method._learn, []

    def spy(self, given, classes):
        shared.append(np.shares_memory(given, mapped) and given.dtype == np.float32)
        return learn(self, given, classes)

    monkeypatch.setattr(method, "_learn", spy)
    codes = quick(method, 12).fit(mapped, labels).transform(mapped)
    assert shared == [True]
    np.testing.assert_array_equal(codes, quick(method, 12).fit(z, labels).transform(z))


def test_a_hash_function_takes_part_in_a_pipeline_and_its_search_of_parameters(z):
    labels = (z[:, 0] > z[:, 1]).astype(np.int64)
    pipeline = make_pipeline(Normalizer(), KSH(8, anchors=20), KNeighborsClassifier(metric="hamming"))
    search = GridSearchCV(pipeline, {"ksh__code_length": np.array([4, 16]), "ksh__iterations": [0, 50]}, cv=3)
    assert search.fit(z, labels).best_score_ > 0.8
