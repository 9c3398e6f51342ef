import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval import bit_balance, check_code_length, distinct_codes, pack_bits, unpack_bits
from deephash_pipeline.retrieval.codes import code_words

seeds = st.integers(0, 2**32 - 1)
code_lengths = st.integers(1, 4096)


def random_bits(seed, items, code_length):
    return np.random.default_rng(seed).random((items, code_length)) < 0.5


@given(seed=seeds, items=st.integers(0, 20), code_length=code_lengths)
def test_unpacking_undoes_packing(seed, items, code_length):
    bits = random_bits(seed, items, code_length)
    unpacked = unpack_bits(pack_bits(bits), code_length)
    assert unpacked.dtype == np.bool_
    np.testing.assert_array_equal(unpacked, bits)


def test_the_first_bit_is_the_most_significant_and_the_last_byte_is_padded_with_zeros():
    bits = np.array([[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1]], dtype=bool)
    assert pack_bits(bits).tolist() == [[0b10000000, 0b10010000]]


@given(seed=seeds, code_length=code_lengths)
def test_words_keep_every_hamming_distance(seed, code_length):
    bits = random_bits(seed, 2, code_length)
    words = code_words(pack_bits(bits))
    assert words.shape == (2, -(-code_length // 64))
    assert np.bitwise_count(words[0] ^ words[1]).sum() == np.count_nonzero(bits[0] != bits[1])


@pytest.mark.parametrize("code_length", [0, -1, 4097, 12.0, "48", True, None])
def test_a_code_length_outside_1_to_4096_is_refused(code_length):
    with pytest.raises(InputError, match=r"^code_length is .*1 to 4096\.$"):
        check_code_length(code_length)


def test_a_code_length_of_a_numpy_integer_type_becomes_a_plain_int():
    code_length = np.int32(48)
    assert type(check_code_length(code_length)) is int


def test_signs_are_refused_because_the_sign_of_zero_would_be_half_a_bit():
    with pytest.raises(InputError, match="bool"):
        pack_bits(np.sign([[-0.3, 0.0, 2.0]]))


@pytest.mark.parametrize(
    "bits", [np.zeros(12, dtype=bool), np.zeros((3, 0), dtype=bool), np.zeros((3, 4097), dtype=bool)]
)
def test_bits_of_another_shape_than_items_by_1_to_4096_are_refused(bits):
    with pytest.raises(InputError):
        pack_bits(bits)


def test_bit_balance_is_the_share_of_ones_of_each_bit():
    bits = np.array([[1, 0, 1], [1, 0, 0], [1, 0, 0], [1, 0, 1]], dtype=bool)
    assert bit_balance(pack_bits(bits), 3).tolist() == [1.0, 0.0, 0.5]


def test_bit_balance_of_no_codes_is_refused():
    with pytest.raises(InputError, match="no code"):
        bit_balance(np.zeros((0, 2), dtype=np.uint8), 12)


@given(seed=seeds, items=st.integers(0, 40), code_length=code_lengths)
def test_distinct_codes_are_counted_once(seed, items, code_length):
    rng = np.random.default_rng(seed)
    prototypes = random_bits(seed, 6, code_length)
    bits = prototypes[rng.integers(0, 6, items)]
    assert distinct_codes(pack_bits(bits)) == len({row.tobytes() for row in bits})
