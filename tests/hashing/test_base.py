import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from pydantic import ValidationError
from scipy.sparse import csr_array
from sklearn.exceptions import DataConversionWarning
from typing_extensions import TypeAliasType, TypeVar

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing import (
    AGH,
    BRE,
    HASH_FUNCTIONS,
    ITQ,
    ITQCCA,
    KSH,
    LDAH,
    LSH,
    MLH,
    PCAH,
    FastHash,
    HashFunction,
    SpectralHashing,
    hash_function_model,
    principal_directions,
    rows,
)
from deephash_pipeline.hashing.encoder import StoredArray, _OfFields, learned
from deephash_pipeline.hashing.rows import VALUES_PER_BLOCK

METHODS = list(HASH_FUNCTIONS.values())
# One of those that make bits of features by the same function.
ENCODING_ALIKE = list({method._outputs: method for method in METHODS}.values())
SUPERVISED = [method for method in METHODS if method.supervised]

OUT_OF_RANGE = {
    BRE: {"training_rows": 1, "anchors": 0, "pair_share": 0.0, "tolerance": -1.0, "maximum_sweeps": 0},
    ITQ: {"iterations": 0},
    KSH: {"anchors": 0, "labelled_samples": 1, "iterations": -1},
    LDAH: {"positive_pairs": 0},
    MLH: {
        **{"radius_share": 1.1, "similar_share": -0.1, "batch_size": 0, "learning_rate": 0.0, "momentum": 1.0},
        **{"weight_decay": -1.0, "balance": -1.0, "stages": 0, "batches_per_stage": 0},
    },
}


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_arrays(method, z, labels, quick):
    first, second = (quick(method, 12, seed=5).fit(z, labels).arrays() for _ in range(2))
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])


@pytest.mark.parametrize("method", [LSH, ITQ, BRE, KSH, LDAH, MLH])
def test_another_seed_gives_another_projection(method, z, labels, quick):
    first, other = (quick(method, 12, seed).fit(z, labels).arrays()["projection"] for seed in (5, 6))
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("method", ENCODING_ALIKE)
def test_a_code_does_not_depend_on_the_batch_it_is_computed_in(method, quick):
    generator = np.random.default_rng(3)
    features = 2048
    z = np.maximum(generator.normal(size=(VALUES_PER_BLOCK // features + 40, features)) + 1.0, 0.0).astype(np.float32)
    hash_function = quick(method, 8).fit(z, np.arange(len(z)) % 10)
    together = hash_function.transform(z)
    one_by_one = np.concatenate([hash_function.transform(z[row : row + 1]) for row in range(len(z))])
    np.testing.assert_array_equal(together, one_by_one)


@pytest.mark.parametrize("method", [KSH, HASH_FUNCTIONS["sdh"]])
def test_nor_does_it_where_features_lie_far_from_0(method, quick):
    z = 1e6 + 2 * np.random.default_rng(3).normal(size=(300, 16))
    hash_function = quick(method, 16).fit(z, np.arange(300) % 5)
    together = hash_function.transform(z)
    assert 0 < together.mean() < 1
    np.testing.assert_array_equal(together, np.concatenate([hash_function.transform(row[np.newaxis]) for row in z]))


def test_agh_learns_the_same_of_numbers_in_float32_and_float64(z, quick):
    narrow, wide = (quick(AGH, 8).fit(z.astype(kind)).arrays() for kind in (np.float32, np.float64))
    np.testing.assert_array_equal(narrow["anchors"], wide["anchors"])


# Not of KSH: coefficients of similar anchors are large and cancel, so rounding shows in them, though not in codes.
# Nor of Liong's: L-BFGS on a float32 objective takes another path where the last bit differs.
@pytest.mark.parametrize("method", [method for method in METHODS if method not in (KSH, HASH_FUNCTIONS["liong_sdh"])])
def test_the_size_of_blocks_changes_nothing_but_rounding(method, z, labels, quick, monkeypatch):
    parameters = {"centre": True} if method is LSH else {}
    whole = quick(method, 12, **parameters).fit(z, labels)
    monkeypatch.setattr(rows, "VALUES_PER_BLOCK", 7 * z.shape[1])
    monkeypatch.setattr(principal_directions, "COVARIANCE_ROWS", 7)
    assert len(list(rows.row_blocks(z))) == 43
    in_blocks = quick(method, 12, **parameters).fit(z, labels)
    for name, array in whole.arrays().items():
        np.testing.assert_allclose(in_blocks.arrays()[name], array, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(
        whole.transform(z), np.concatenate([whole.transform(z[:100]), whole.transform(z[100:])])
    )


@pytest.mark.parametrize("method", ENCODING_ALIKE)
def test_float64_features_give_the_codes_of_the_same_numbers_in_float32(method, z, labels, quick):
    hash_function = quick(method, 12).fit(z, labels)
    np.testing.assert_array_equal(hash_function.transform(z), hash_function.transform(z.astype(np.float64)))


@pytest.mark.parametrize("broken_value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_with_the_number_of_rows(broken_value, z, monkeypatch):
    monkeypatch.setattr(rows, "VALUES_PER_BLOCK", 5 * z.shape[1])
    broken = z.copy()
    broken[3, 1:4] = broken[7, 0] = broken_value
    hash_function = LSH(12).fit(z)
    for step in (hash_function.fit, hash_function.transform):
        with pytest.raises(InputError, match=r"^X contains NaN or infinity in 2 of 300 rows"):
            step(broken)


@pytest.mark.parametrize(
    "malformed", [np.zeros(5), np.zeros((2, 3, 4)), np.zeros((5, 0)), [["a", "b"]] * 5, [[pd.NA, 1.0]] * 5]
)
def test_features_that_are_no_table_of_numbers_are_refused_in_one_line(malformed):
    with pytest.raises(InputError) as caught:
        LSH(4).fit(malformed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", SUPERVISED)
def test_all_supervised_methods_refuse_missing_labels_alike(method, z):
    with pytest.raises(InputError) as caught:
        method(12).fit(z)
    assert str(caught.value) == (
        f"{method.__name__} requires y to be passed, but the target y is None: give the class of each row of X, "
        "or take a method that does without, such as ITQ or BRE(supervised=False)"
    )


@pytest.mark.parametrize("method", SUPERVISED)
def test_all_supervised_methods_refuse_a_single_class_alike(method, z):
    with pytest.raises(InputError, match=rf"^y names one class only, but {method.__name__} learns from differences"):
        method(12).fit(z, np.full(300, 4))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.arange(299), r"^Found input variables with inconsistent numbers of samples: \[300, 299\]"),
        (np.full((300, 2), 5), r"^y of shape \(300, 2\) has values other than 0 and 1: give 1 for .* shape \(300,\)"),
        ([[0, 1]] * 299, r"^y has 299 rows: give 0 and 1 for each of 300 rows of X"),
        ([[0, 1], [1]] * 150, r"inhomogeneous"),
        (np.linspace(0, 1, 300), r"^KSH learns from classes, but y contains fractions"),
        (np.array([1, "a"] * 150, dtype=object), r"^y mixes classes that cannot be compared"),
        (csr_array(np.ones((300, 2))), r"^y is sparse: give an array"),
        (pd.Series(["a", pd.NA, "b"] * 100, dtype="string"), r"^y has missing values: give"),
    ],
)
def test_labels_that_are_not_one_class_for_each_row_are_refused(labels, message, z):
    with pytest.raises(InputError, match=message):
        KSH(4).fit(z, labels)


def test_labels_of_several_columns_may_be_of_any_kind(z):
    several = np.stack([z[:, 0] > 0, z[:, 1] > 0, z[:, 2] > 0], axis=1)
    codes = KSH(4, anchors=30).fit(z, several).transform(z)
    for labels in (several.astype(int), several.astype(int).tolist(), pd.DataFrame(several.astype(float))):
        np.testing.assert_array_equal(KSH(4, anchors=30).fit(z, labels).transform(z), codes)
    with pytest.warns(DataConversionWarning):
        of_one_column = KSH(4, anchors=30).fit(z, pd.DataFrame(several[:, :1].astype(int))).transform(z)
    expected = KSH(4, anchors=30).fit(z, several[:, 0].astype(int)).transform(z)
    np.testing.assert_array_equal(of_one_column, expected)


@pytest.mark.parametrize("method", METHODS)
def test_transform_and_arrays_before_fit_are_refused(method, z):
    for step in (lambda: method(12).transform(z), method(12).arrays):
        with pytest.raises(InputError, match=rf"^{method.__name__} has learned nothing yet: call fit"):
            step()


@pytest.mark.parametrize("code_length", [0, -1, 4097, 12.0, True])
def test_code_lengths_outside_1_to_4096_are_refused(code_length, z):
    with pytest.raises(InputError, match=r"^code_length is .* from 1 to 4096"):
        LSH(code_length).fit(z)


@pytest.mark.parametrize("random_state", [-1, None, 0.5])
def test_a_random_state_that_is_no_seed_is_refused(random_state, z):
    with pytest.raises(InputError, match=rf"^random_state is {random_state}: choose an integer of at least 0"):
        LSH(12, random_state=random_state).fit(z)


@pytest.mark.parametrize("method", OUT_OF_RANGE)
def test_parameters_out_of_range_are_refused_by_name(method, z, labels):
    for name, value in OUT_OF_RANGE[method].items():
        with pytest.raises(InputError, match=rf"^{method.__name__}: {name}: Input should be "):
            method(4, **{name: value}).fit(z, labels)
        with pytest.raises(ValidationError, match=rf"{name}\n *Input should be "):
            hash_function_model(method).model_validate({name: value})


@pytest.mark.parametrize("method", [PCAH, SpectralHashing, LDAH, KSH, MLH, FastHash, ITQCCA])
@pytest.mark.parametrize("value", [0.0, 0.1])
def test_equal_rows_are_refused(method, value):
    with pytest.raises(InputError, match=r"^X has only equal rows"):
        method(1).fit(np.full((50, 3), value), np.arange(50) % 2)


def test_parameters_of_a_wrong_type_are_refused_all_in_one_line(z):
    with pytest.raises(InputError) as caught:
        BRE(12, anchors="3", centre=1, supervised=False).fit(z)
    assert str(caught.value) == (
        "BRE: centre: Input should be a valid boolean (got 1); anchors: Input should be a valid integer (got '3')"
    )


def test_arrays_that_are_not_those_of_a_method_are_refused(z, labels, quick):
    arrays, waves, graph = (quick(method, 12).fit(z).arrays() for method in (LSH, SpectralHashing, AGH))
    trees = quick(FastHash, 2).fit(z, labels).arrays()
    for method, code_length, given, message in (
        (LSH, 12, waves, r"^LSH is made of the arrays projection, threshold, not axis"),
        (LSH, 12, [*arrays], r"^LSH is made of a dictionary of arrays, not of a list"),
        (LSH, 16, arrays, r"^array projection of LSH has shape \(20, 12\), not \(20, 16\)"),
        (LSH, 12, arrays | {"threshold": np.full(12, np.nan)}, r"^array threshold of LSH contains NaN or infinity"),
        (LSH, 12, arrays | {"threshold": ["a"] * 12}, r"^array threshold of LSH is no array of float64 \(could not"),
        (SpectralHashing, 12, waves | {"axis": np.full(12, -1)}, r"^array axis names an axis outside 0\.\.11"),
        (SpectralHashing, 12, waves | {"axis": np.full(12, 12)}, r"^array axis names an axis outside 0\.\.11"),
        (AGH, 8, graph, r"^arrays of AGH make 6 first and 6 second bits, not a code of 8"),
        (FastHash, 2, trees | {"feature": trees["feature"] + 20}, r"^array feature .* names a feature outside 0\.\.19"),
        (FastHash, 2, {**trees, **{name: trees[name][..., 1:] for name in ("feature", "value")}}, r"of 30 nodes"),
    ):
        with pytest.raises(InputError, match=message):
            method.from_arrays(code_length, given)


def test_arrays_are_declared_alike_with_every_numpy():
    number = TypeVar("number", bound=np.generic)
    of_numpy_2_5 = TypeAliasType("of_numpy_2_5", np.ndarray[tuple[int, ...], np.dtype[number]], type_params=(number,))

    class TwoArrays(_OfFields):
        projection_: NDArray[np.float32] = learned("features", "code_length")
        threshold_: of_numpy_2_5[np.float64] = learned("code_length")

    assert TwoArrays.stored["projection"] == StoredArray(("features", "code_length"), np.float32)
    assert TwoArrays.stored["threshold"] == StoredArray(("code_length",), np.float64)


class Waves(HashFunction):
    """A method whose slips are those of its parameter."""

    slip: str = "none"
    directions_: NDArray[np.float32] = learned("features", "code_length")

    def _learn(self, z, labels):
        return {"directions": np.random.default_rng(0).normal(size=(z.shape[1], self.code_length))}

    def _outputs(self, z, xp=np):
        outputs = np.cos(z @ self.directions_) - (self.slip == "parameter")
        slips = {
            "bits": outputs >= 0,
            "column": outputs[:, :1],
            "means": outputs.mean(axis=0),
            "nan": outputs * np.nan,
        }
        return slips.get(self.slip, outputs)


class WithoutDefault(Waves):
    width: float


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (Waves(8, slip="bits"), r"gave bool of shape \(2, 8\): return floating numbers without NaN of shape \(2, 8\)"),
        (Waves(8, slip="column"), r"of shape \(2, 1\)"),
        (Waves(8, slip="means"), r"of shape \(8,\)"),
        (Waves(8, slip="nan"), "gave float64 .*without NaN"),
        (Waves(8, slip="parameter"), "reads what is not stored: take it from arrays that are `learned`"),
        (WithoutDefault(8, width=2.0), "'width': give each parameter a default"),
    ],
)
def test_a_method_whose_codes_would_be_others_once_it_is_stored_is_refused_by_fit(method, said):
    z = np.random.default_rng(1).normal(size=(40, 5))
    assert Waves(8).fit(z).transform(z).any()
    with pytest.raises(InputError, match=f"^{type(method).__name__}: .*{said}"):
        method.fit(z)
