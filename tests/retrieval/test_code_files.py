import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval import count_distances, pack_bits, retrieval_metrics
from deephash_pipeline.retrieval.code_files import labelled_codes
from tests.retrieval.random_codes import (
    BITS,
    CLASSES,
    CODE_LENGTH,
    DATABASE_BITS,
    DATABASE_LABELS,
    QUERY_BITS,
    QUERY_LABELS,
)

CODES, LABELS = ("query_codes", "database_codes"), ("query_labels", "database_labels")
SIGNS = {**BITS, **{name: np.where(BITS[name], 1.0, -1.0) for name in CODES}}
BYTES = {**BITS, **{name: pack_bits(BITS[name]) for name in CODES}, "code_length": CODE_LENGTH}


def assert_packed(arrays):
    """Assert that codes and labels become what they are made from."""
    expected = pack_bits(QUERY_BITS), QUERY_LABELS, pack_bits(DATABASE_BITS), DATABASE_LABELS, CODE_LENGTH
    for found, wanted in zip(labelled_codes(**arrays), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
def test_signs_of_any_type_are_bits(dtype):
    assert_packed({**BITS, **{name: SIGNS[name].astype(dtype) for name in CODES}})


@pytest.mark.parametrize("dtype", ["bool", "float32", "uint8", "int64"])
@pytest.mark.parametrize("code_length", [{}, {"code_length": CODE_LENGTH}])
def test_zeros_and_ones_of_any_type_are_bits_with_or_without_their_length(dtype, code_length):
    assert_packed({**BITS, **{name: BITS[name].astype(dtype) for name in CODES}, **code_length})


@pytest.mark.parametrize("as_stored", [int, np.array, np.atleast_2d])
def test_packed_bytes_are_taken_with_their_length(as_stored):
    assert_packed({**BYTES, "code_length": as_stored(CODE_LENGTH)})


def test_a_single_bit_is_a_byte_of_its_own_only_with_a_code_length():
    labels, bits = np.zeros(2, dtype=np.int64), np.array([[0], [1]], dtype=np.uint8)
    for codes in (labelled_codes(bits, labels, bits, labels), labelled_codes(bits << 7, labels, bits << 7, labels, 1)):
        assert codes.query_codes.tolist() == codes.database_codes.tolist() == [[0], [128]]
        assert codes.code_length == 1


def test_another_order_of_bits_in_packed_bytes_gives_the_same_figures_with_all_bits_counted():
    little = {name: np.packbits(BITS[name], axis=1, bitorder="little") for name in CODES}
    metrics = retrieval_metrics(count_distances(*labelled_codes(**{**BITS, **little, "code_length": 16})))
    assert metrics == retrieval_metrics(count_distances(*labelled_codes(**BITS)))


def test_codes_of_more_rows_than_are_packed_at_a_time_stay_in_order(monkeypatch):
    monkeypatch.setattr("deephash_pipeline.retrieval.code_files.CODES_AT_A_TIME", 7)
    assert_packed(SIGNS)


@pytest.mark.parametrize("dtype", ["bool", "float32", "uint8", "int64"])
def test_one_hot_labels_become_class_numbers(dtype):
    assert_packed({**BITS, **{name: np.eye(CLASSES, dtype=dtype)[BITS[name]] for name in LABELS}})


@pytest.mark.parametrize("dtype", ["bool", "float32", "uint8", "int64"])
def test_an_item_is_relevant_if_it_shares_any_class_with_the_query(dtype):
    rng = np.random.default_rng(7)
    query_classes, database_classes = rng.random((7, 5)) < 0.3, rng.random((60, 5)) < 0.3
    classes = {"query_labels": query_classes.astype(dtype), "database_labels": database_classes.astype(dtype)}
    histograms = count_distances(*labelled_codes(**{**BITS, **classes}))
    distances = np.count_nonzero(QUERY_BITS[:, None] != DATABASE_BITS, axis=2)
    shared = (query_classes[:, None] & database_classes).any(axis=2)
    for distance in range(CODE_LENGTH + 1):
        expected = np.count_nonzero(shared & (distances == distance), axis=1)
        np.testing.assert_array_equal(histograms.relevant[:, distance], expected)


def test_items_of_one_class_each_are_not_class_numbers_beside_queries_of_several():
    several = np.ones((7, CLASSES), dtype=bool)
    single = np.eye(CLASSES, dtype=bool)[DATABASE_LABELS]
    codes = labelled_codes(**{**BITS, "query_labels": several, "database_labels": single})
    np.testing.assert_array_equal(codes.query_labels, several)
    np.testing.assert_array_equal(codes.database_labels, single)


def changed(name, change, arrays=SIGNS):
    return {**arrays, name: change(arrays[name])}


def first_set_to(value):
    def change(array):
        array = array.copy()
        array[0, 0] = value
        return array

    return change


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (changed("query_codes", first_set_to(0)), "query_codes has both 0 and -1: the sign of 0 is neither bit"),
        (changed("query_codes", lambda _: QUERY_BITS.astype(float)), "query_codes with database_codes has both 0"),
        (changed("database_codes", first_set_to(0.5)), "database_codes holds 0.5; give bits, signs -1 and +1"),
        (changed("database_codes", first_set_to(np.nan)), "database_codes holds nan; give bits"),
        (changed("query_codes", lambda codes: codes[0]), "query_codes must be a two-dimensional array"),
        (changed("query_codes", lambda codes: codes.astype(str)), "query_codes must be a two-dimensional array"),
        (changed("query_codes", lambda codes: codes[:, :9]), "query_codes has 9 bits and database_codes 12"),
        ({**SIGNS, "code_length": 16}, "float64 with 12 columns; code_length = 16 takes 16 bits or, as uint8, 2"),
        ({**BYTES, "code_length": 9}, "query_codes has bits set beyond code_length = 9"),
        ({**BYTES, "code_length": 12.0}, "code_length is 12.0; give a whole number"),
        (changed("query_labels", lambda labels: labels / 2), "query_labels"),
        (changed("query_labels", lambda labels: labels[:, None]), "int64 of shape (7, 1); give one class number per"),
        (changed("query_labels", lambda labels: np.eye(CLASSES)[labels] * 2), "shape (7, 4) holds 2.0; give one class"),
        ({**SIGNS, **{name: np.eye(CLASSES + i)[BITS[name]] for i, name in enumerate(LABELS)}}, "labels"),
    ],
)
def test_what_is_no_codes_and_labels_is_refused_in_one_line(arrays, message):
    with pytest.raises(InputError) as error:
        count_distances(*labelled_codes(**arrays))
    assert message in str(error.value) and "\n" not in str(error.value)
