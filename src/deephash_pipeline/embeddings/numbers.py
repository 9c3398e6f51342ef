"""Arrays of NumPy from whatever a user has vectors in: lists, tensors, columns of tables, numbers of 8 and 16 bits."""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError

BFLOAT16 = "bfloat16"
TYPES = "bfloat16, float16, float32, float64, int8, uint8 or wider integers up to 32 bits"


def array_of(values: Any, name: str) -> NDArray[Any]:
    """Vectors as an array (n, width), not copied where that can be done without; a single one becomes a row.

    Args:
        values: an array; a tensor of PyTorch, also one that requires a gradient or lies on another device; an array of
            Arrow; whatever has `__array__` or `__dlpack__`; a list or column of vectors.
        name: name in messages.

    Raises:
        InputError: it has another shape or type, or no number.

    Example:
        >>> array_of([[1, 2], [3, 4]], "vectors").dtype, array_of(np.ones(3, np.int8), "vectors").shape
        (dtype('float64'), (1, 3))
    """
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(f"{name} is a masked array: fill what is masked, or drop its rows")
    given = values if isinstance(values, np.ndarray) else _converted(values, name)
    if given.dtype.kind == "O" and given.ndim == 1 and len(given):
        given = _table(list(given), name)
    given = given[np.newaxis] if given.ndim == 1 else given
    if given.ndim != 2 or not given.size or not _is_number(given.dtype):
        raise InputError(f"{name} is {given.dtype} of shape {given.shape}: give {TYPES}, of shape (n, width)")
    return given


def reals(block: NDArray[Any]) -> NDArray[Any]:
    """The same numbers as floating point: integers and bfloat16 as float32, or float64 where that holds them alone.

    Example:
        >>> reals(np.array([[-128, 127]], dtype=np.int8))
        array([[-128.,  127.]], dtype=float32)
    """
    if block.dtype.kind == "f":
        return block
    if block.dtype.name == BFLOAT16:
        return widened(block.view(np.uint16))
    return block.astype(np.float32 if block.dtype.itemsize <= 2 else np.float64)


def widened(bits: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Numbers of bfloat16, given as their bits, as float32.

    Example:
        >>> widened(np.array([0x3F80, 0xC040], dtype=np.uint16))
        array([ 1., -3.], dtype=float32)
    """
    return (np.ascontiguousarray(bits).astype(np.uint32) << 16).view(np.float32)


def rows_of_lists(lists: Any, name: str, start: int = 0, width: int | None = None) -> NDArray[Any]:
    """Lists of Arrow as an array (rows, width).

    Args:
        lists: an array of lists, large lists or lists of a fixed size.
        name: name in messages.
        start: number of the first row.
        width: how long lists must be; by default as the first is.

    Raises:
        InputError: a row has no list, or one of another length.
    """
    if lists.null_count:
        # Of a list of fixed size the numbers of a row that is missing are there, whatever they are.
        row = start + int(np.flatnonzero(lists.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(f"{name}: row {row} has no vector: mend or drop it")
    lengths = sys.modules["pyarrow.compute"].list_value_length(lists).to_numpy(zero_copy_only=False)
    wanted = int(lengths[0]) if width is None else width
    wrong = np.flatnonzero(~(lengths == wanted))
    if len(wrong) or not wanted > 0:
        row = int(wrong[0]) if len(wrong) else 0
        raise InputError(
            f"{name}: row {start + row} has {int(lengths[row])} numbers, the first has {wanted}: mend or drop it"
        )
    numbers: NDArray[Any] = lists.flatten().to_numpy(zero_copy_only=False)
    return numbers.reshape(-1, wanted)


def _is_number(kind: np.dtype[Any]) -> bool:
    integer = kind.kind in "iu" and kind.itemsize <= 4
    return (kind.kind == "f" and kind.itemsize <= 8) or integer or kind.name == BFLOAT16


def _converted(values: Any, name: str) -> NDArray[Any]:
    try:
        if hasattr(values, "detach"):
            values = values.detach().cpu()
            # NumPy has no such numbers.
            return np.asarray(values.float() if str(values.dtype).endswith(BFLOAT16) else values)
        if type(values).__module__.partition(".")[0] == "pyarrow":
            return _of_arrow(values, name)
        if hasattr(values, "__array__"):
            return np.asarray(values)
        if hasattr(values, "__dlpack__"):
            return np.from_dlpack(values)
    except InputError:
        raise
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise InputError(f"{name} are no table of numbers ({error}): give one of shape (n, width)") from error
    return _table(values, name)


def _of_arrow(values: Any, name: str) -> NDArray[Any]:
    import pyarrow.compute  # noqa: F401, PLC0415 - whoever gives such an array has it

    whole = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    if not (hasattr(whole, "flatten") and hasattr(whole.type, "value_type")):
        raise InputError(f"{name} are {whole.type} of Arrow: give lists of numbers, one for each vector")
    if not len(whole):
        raise InputError(f"{name} has no vector: give one at least")
    return rows_of_lists(whole, name)


def _table(values: Any, name: str) -> NDArray[Any]:
    """A table of numbers that is no array."""
    try:
        rows = [np.asarray(row) for row in values] if not np.isscalar(values) else [np.asarray(values)]
        kinds = {row.dtype for row in rows}
        # A column of arrays keeps their type; numbers of Python, and rows of several types, become float64.
        if len(kinds) == 1 and kinds.pop().kind == "f":
            return np.stack(rows)
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name} are no table of numbers ({error}): give one of shape (n, width)") from error
