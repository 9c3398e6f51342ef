"""Packed binary codes: eight bits to a byte, as they are stored, compared and served.

Bit `k` of an item is the `k`-th most significant bit of its row of bytes, the order of `numpy.packbits`. What is left
of the last byte is zero in every code, so that padding never adds to a Hamming distance.
"""

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError

MAXIMUM_CODE_LENGTH = 4096
"""Of all codes, wherever they are made, counted, searched or stored."""

BITS_PER_BYTE = 8
BYTES_PER_WORD = 8


@dataclass(frozen=True, eq=False)
class CodeSets:
    """Packed codes of the sets of a benchmark, all made by the same function.

    Attributes:
        database: uint8 (items, ceil(code_length / 8)), what is searched.
        validation: uint8, of images to choose parameters by; may hold no row.
        query: uint8, of images that are only ever searched with.
        code_length: bits per code; the bits that fill up the last byte are zero.

    Example:
        >>> codes, none = np.array([[7]], dtype=np.uint8), np.empty((0, 1), dtype=np.uint8)
        >>> CodeSets(database=codes, validation=none, query=codes, code_length=8).code_length
        8
    """

    database: NDArray[np.uint8]
    validation: NDArray[np.uint8]
    query: NDArray[np.uint8]
    code_length: int


def check_code_length(code_length: int) -> int:
    """Return the code length as a plain `int`; raise InputError unless it is a whole number of bits in 1..4096.

    Example:
        >>> check_code_length(np.int64(48))
        48
    """
    if isinstance(code_length, bool) or not isinstance(code_length, Integral):
        raise InputError(f"code_length is {code_length!r}; give a whole number from 1 to {MAXIMUM_CODE_LENGTH}.")
    if not 1 <= code_length <= MAXIMUM_CODE_LENGTH:
        raise InputError(f"code_length is {code_length} bits; choose one from 1 to {MAXIMUM_CODE_LENGTH}.")
    return int(code_length)


def check_count(count: Any, name: str, least: int = 1) -> int:
    """Return a number of things as a plain `int`; raise InputError unless it is a whole number of at least `least`.

    Example:
        >>> check_count(np.int64(10), "k")
        10
    """
    if isinstance(count, bool) or not isinstance(count, Integral) or count < least:
        raise InputError(f"{name} is {count!r}; give a whole number from {least} on.")
    return int(count)


def check_codes(codes: NDArray[np.uint8], code_length: int, name: str = "codes") -> NDArray[np.uint8]:
    """Return packed codes unchanged once their type, width and padding are known to be right.

    Args:
        codes: packed codes, uint8 of shape (n, ceil(code_length / 8)).
        code_length: bits per code, 1..4096.
        name: name of the array in the error message.

    Raises:
        InputError: if the array is not uint8, not two-dimensional, of another width, or has bits set beyond
            `code_length` (they would be counted as distance).

    Example:
        >>> check_codes(np.array([[0b11110000]], dtype=np.uint8), code_length=4)
        array([[240]], dtype=uint8)
    """
    check_code_shape(codes, code_length, name)
    padding = -code_length % BITS_PER_BYTE
    if padding and np.any(codes[:, -1] & np.uint8((1 << padding) - 1)):
        raise InputError(f"{name} has bits set beyond code_length = {code_length}; pack bits with pack_bits.")
    return codes


def check_code_shape(codes: NDArray[np.uint8], code_length: int, name: str = "codes") -> None:
    """Check what `check_codes` does as far as it takes no look at the codes, which may lie on a disk.

    Raises:
        InputError: if the array is not uint8, not two-dimensional, or of another width.

    Example:
        >>> check_code_shape(np.zeros((3, 6), dtype=np.uint8), code_length=48)
    """
    bytes_per_code = -(-check_code_length(code_length) // BITS_PER_BYTE)
    _check_bytes(codes, name)
    if codes.shape[1] != bytes_per_code:
        raise InputError(
            f"{name} has {codes.shape[1]} bytes per code, but {code_length} bits take {bytes_per_code}; "
            "give the code_length that the codes were packed with."
        )


def pack_bits(bits: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Pack bits of shape (n, K) into bytes of shape (n, ceil(K / 8)), most significant bit first, zero padded.

    Raises:
        InputError: if `bits` is not a two-dimensional boolean array (signs -1/+1 are refused: -1 would count as a
            one), or K is outside 1..4096.

    Example:
        >>> pack_bits(np.array([[True, False, True]]))
        array([[160]], dtype=uint8)
    """
    if not isinstance(bits, np.ndarray) or bits.dtype != np.bool_ or bits.ndim != 2:
        raise InputError(f"bits must be a two-dimensional bool array, got {_describe(bits)}; give them as u >= 0.")
    check_code_length(bits.shape[1])
    return np.packbits(bits, axis=1)


def unpack_bits(codes: NDArray[np.uint8], code_length: int) -> NDArray[np.bool_]:
    """Undo `pack_bits`: bytes of shape (n, ceil(code_length / 8)) into bits of shape (n, code_length).

    Raises:
        InputError: if the codes do not fit `code_length`, see `check_codes`.

    Example:
        >>> unpack_bits(np.array([[160]], dtype=np.uint8), code_length=3)
        array([[ True, False,  True]])
    """
    return np.unpackbits(check_codes(codes, code_length), axis=1, count=code_length).view(np.bool_)


def code_words(codes: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return packed codes of shape (n, bytes) as 64-bit words of shape (n, ceil(bytes / 8)), zero padded.

    The order of bytes within a word depends on the processor; a Hamming distance between words does not.

    Example:
        >>> code_words(np.zeros((5, 9), dtype=np.uint8)).shape
        (5, 2)
    """
    items, bytes_per_code = codes.shape
    words = -(-bytes_per_code // BYTES_PER_WORD)
    if not bytes_per_code % BYTES_PER_WORD:
        return np.array(codes, order="C").view(np.uint64)
    padded = np.zeros((items, words * BYTES_PER_WORD), dtype=np.uint8)
    padded[:, :bytes_per_code] = codes
    return padded.view(np.uint64)


def bit_balance(codes: NDArray[np.uint8], code_length: int) -> NDArray[np.float64]:
    """Share of ones in every bit, shape (code_length,): 0.5 is a balanced bit, 0 or 1 one that says nothing.

    Raises:
        InputError: if the codes do not fit `code_length` or there are none.

    Example:
        >>> bit_balance(pack_bits(np.array([[True, False], [True, True]])), code_length=2)
        array([1. , 0.5])
    """
    if not len(check_codes(codes, code_length)):
        raise InputError("codes holds no code, so its bits have no balance; give at least one.")
    balance: NDArray[np.float64] = np.mean(unpack_bits(codes, code_length), axis=0, dtype=np.float64)
    return balance


def distinct_codes(codes: NDArray[np.uint8]) -> int:
    """Count the different codes among packed codes of shape (n, bytes); far fewer than n is a sign of collapse.

    Raises:
        InputError: if `codes` is not a two-dimensional uint8 array.

    Example:
        >>> distinct_codes(np.array([[1], [2], [1]], dtype=np.uint8))
        2
    """
    _check_bytes(codes, "codes")
    if not len(codes):
        return 0
    words = code_words(codes)
    in_order = words[np.lexsort(words.T)]
    return 1 + int(np.count_nonzero(np.any(in_order[1:] != in_order[:-1], axis=1)))


def _check_bytes(codes: NDArray[np.uint8], name: str) -> None:
    if not isinstance(codes, np.ndarray) or codes.dtype != np.uint8 or codes.ndim != 2:
        raise InputError(f"{name} must be a two-dimensional uint8 array, got {_describe(codes)}; use pack_bits.")


def _describe(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return type(value).__name__
