"""Codes and labels as other toolboxes store them, brought into the form that is counted.

They keep codes as signs -1/+1, as bits or as packed bytes, and labels as class numbers or as one column per class. A
zero among signs is refused: it is the sign of zero, which is neither bit and would be half a bit of distance.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval.codes import BITS_PER_BYTE, check_code_length

CODES_AT_A_TIME = 1 << 16


class LabelledCodes(NamedTuple):
    """What `count_distances` takes, in its order: `count_distances(*labelled_codes(...))`.

    Attributes:
        query_codes: packed codes, uint8 (queries, ceil(code_length / 8)).
        query_labels: class numbers, integers (queries,), or classes of each item, bool (queries, classes).
        database_codes: packed codes, uint8 (items, ceil(code_length / 8)).
        database_labels: class numbers, integers (items,), or classes of each item, bool (items, classes).
        code_length: bits per code.

    Example:
        >>> from deephash_pipeline.retrieval import count_distances
        >>> code = np.array([[0b10100000]], dtype=np.uint8)
        >>> count_distances(*LabelledCodes(code, np.array([3]), code, np.array([3]), code_length=3)).all
        array([[1, 0, 0, 0]])
    """

    query_codes: NDArray[np.uint8]
    query_labels: NDArray[Any]
    database_codes: NDArray[np.uint8]
    database_labels: NDArray[Any]
    code_length: int


def labelled_codes(
    query_codes: NDArray[Any],
    query_labels: NDArray[Any],
    database_codes: NDArray[Any],
    database_labels: NDArray[Any],
    code_length: int | NDArray[Any] | None = None,
) -> LabelledCodes:
    """Bring codes and labels of any usual form into the form that `count_distances` takes.

    Args:
        query_codes: (queries, K) of bool, of numbers that are all -1 or +1, or of numbers that are all 0 or 1; or
            packed bytes, uint8 (queries, ceil(code_length / 8)).
        query_labels: class numbers, integers (queries,); or (queries, classes) of bool or of 0 and 1, for one or more
            classes of each item. Where every item has exactly one class, these become class numbers.
        database_codes: codes of the items, as `query_codes`.
        database_labels: labels of the items, as `query_labels`.
        code_length: bits per code, also as an array of one number, as files keep it; needed for packed bytes only.

    Raises:
        InputError: if codes or labels have none of these forms, or the two sets differ in code length. Whether every
            code has its label is for `count_distances` to check.

    Example:
        >>> signs, classes = np.array([[1, -1, 1], [1, 1, 1]]), np.array([[0, 1], [1, 0]])
        >>> codes = labelled_codes(signs[:1], classes[:1], signs, classes)
        >>> codes.database_codes.tolist(), codes.database_labels.tolist(), codes.code_length
        ([[160], [224]], [1, 0], 3)
    """
    if isinstance(code_length, np.ndarray):
        code_length = check_code_length(code_length.item() if code_length.size == 1 else code_length.tolist())
    query_length = _code_length(query_codes, "query_codes", code_length)
    database_length = _code_length(database_codes, "database_codes", code_length)
    if query_length != database_length:
        raise InputError(
            f"query_codes has {query_length} bits and database_codes {database_length}; "
            "give codes that were made by the same function."
        )
    query_bytes, query_cleared = _packed(query_codes, "query_codes", code_length)
    database_bytes, database_cleared = _packed(database_codes, "database_codes", code_length)
    for name, cleared in (
        ("query_codes", query_cleared),
        ("database_codes", database_cleared),
        ("query_codes with database_codes", query_cleared | database_cleared),
    ):
        if len(cleared) > 1:
            raise InputError(f"{name} has both 0 and -1: the sign of 0 is neither bit; store bits as outputs >= 0.")
    query_classes = _classes(query_labels, "query_labels")
    database_classes = _classes(database_labels, "database_labels")
    if query_classes.ndim == database_classes.ndim == 2 and query_classes.shape[1] == database_classes.shape[1]:
        both = (query_classes, database_classes)
        if all(np.all(np.count_nonzero(classes, axis=1) == 1) for classes in both):
            # One class number per item says the same, and is counted fastest.
            query_classes, database_classes = (np.argmax(classes, axis=1) for classes in both)
    return LabelledCodes(query_bytes, query_classes, database_bytes, database_classes, query_length)


def _code_length(codes: NDArray[Any], name: str, code_length: int | None) -> int:
    """Return the bits per code, once the array is known to be of that width in bits or in packed bytes."""
    if not _is_numeric(codes) or codes.ndim != 2 or not codes.shape[1]:
        raise InputError(f"{name} must be a two-dimensional array, codes x bits, of bool or numbers.")
    columns = codes.shape[1]
    if code_length is None:
        return check_code_length(columns)
    code_length = check_code_length(code_length)
    if columns != code_length and not _is_packed(codes, code_length):
        raise InputError(
            f"{name} is {codes.dtype} with {columns} columns; code_length = {code_length} takes {code_length} bits "
            f"or, as uint8, {_bytes_per_code(code_length)} packed bytes."
        )
    return code_length


def _packed(codes: NDArray[Any], name: str, code_length: int | None) -> tuple[NDArray[np.uint8], set[int]]:
    """Pack bits, zeros and ones, or signs; also return which numbers other than 1 were found, of 0 and -1."""
    if code_length is not None and _is_packed(codes, code_length):
        return codes, set()
    packed = np.empty((len(codes), _bytes_per_code(codes.shape[1])), dtype=np.uint8)
    cleared = set()
    for start in range(0, len(codes), CODES_AT_A_TIME):
        block = codes[start : start + CODES_AT_A_TIME]
        known = ones = block == 1
        packed[start : start + len(block)] = np.packbits(ones, axis=1)
        if codes.dtype == np.bool_:
            continue
        for number in (0, -1):
            here = block == number
            if here.any():
                cleared.add(number)
            known = known | here
        if not known.all():
            raise InputError(
                f"{name} holds {block[~known][0]}; give bits, signs -1 and +1, or packed bytes with their code_length."
            )
    return packed, cleared


def _bytes_per_code(code_length: int) -> int:
    return -(-code_length // BITS_PER_BYTE)


def _is_packed(codes: NDArray[Any], code_length: int) -> bool:
    # A byte that is 1 has no bit of a packed code of one: it is the bit.
    unpacked = code_length == 1 and np.any(codes == 1)
    return codes.dtype == np.uint8 and codes.shape[1] == _bytes_per_code(code_length) and not unpacked


def _is_numeric(array: object) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "biuf"


def _classes(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Return the classes of each item as bool (n, classes); one-dimensional labels as they are."""
    if not isinstance(labels, np.ndarray) or labels.ndim not in (1, 2):
        raise InputError(f"{name} must be an array of one class number per item, or of one column per class.")
    if labels.ndim == 1:
        return labels
    remedy = "give one class number per item, one-dimensional, or 0 and 1 for each class"
    if not _is_numeric(labels) or labels.shape[1] < 2:
        raise InputError(f"{name} is {labels.dtype} of shape {labels.shape}; {remedy}.")
    has_class: NDArray[np.bool_] = labels == 1
    unknown = ~has_class & (labels != 0)
    if unknown.any():
        raise InputError(f"{name} of shape {labels.shape} holds {labels[unknown][0]}; {remedy}.")
    return has_class
