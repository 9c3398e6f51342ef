"""Distances between a query and features of float16, where they lie in memory or in a mapped file."""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from deephash_pipeline.common.machine_code import compiled

LINE = 64
AHEAD = 2
"""Rows lie anywhere: the processor is told of one while it works on another."""


def _widened(_context: Any, _number: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: list[Any]) -> Any:
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(_number), generate


def _fetch(_context: Any, _array: Any, _byte: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, arguments: list[Any]) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.gep(builder.bitcast(data, cgutils.voidptr_t), [arguments[1]])
        kinds = [cgutils.voidptr_t, *[cgutils.int32_t] * 3]
        function = cgutils.get_or_insert_function(  # type: ignore[no-untyped-call]
            builder.module, ir.FunctionType(ir.VoidType(), kinds), "llvm.prefetch.p0"
        )
        builder.call(function, [address, *map(cgutils.int32_t, (0, 3, 1))])
        return context.get_dummy_value()

    return types.void(_array, types.int64), generate


# A float16 in a uint16, as float32: numba knows no float16.
half_as_float32: Any = intrinsic(_widened)
# Ask for the line of memory at a byte of an array.
fetch_line: Any = intrinsic(_fetch)


@compiled(fastmath={"reassoc", "contract", "nsz"})
def squared_distances_of_float16(
    first: int,
    stop: int,
    z: NDArray[np.float32],
    rows: NDArray[np.int64],
    first_row: int,
    features: NDArray[np.uint16],
    scores: NDArray[np.float32],
) -> None:
    """Write the squared Euclidean distances of some queries to those of their rows that a part of the index has.

    Args:
        first: the first query.
        stop: the query after the last.
        z: queries, float32 (queries, width).
        rows: int64 (queries, items).
        first_row: number of the part's first row.
        features: features of the part, uint16 that are float16 (rows, width).
        scores: float32 (queries, items), written.
    """
    width, size, items = z.shape[1], len(features), rows.shape[1]
    stride = features.shape[1] * features.itemsize
    for query in range(first, stop):
        asked = z[query]
        for item in range(items):
            row = rows[query, item] - first_row
            if row < 0 or row >= size:
                continue
            later = rows[query, min(item + AHEAD, items - 1)] - first_row
            if 0 <= later < size:
                for byte in range(later * stride, (later + 1) * stride, LINE):
                    fetch_line(features, byte)
            numbers = features[row]
            total = np.float32(0)
            for place in range(width):
                difference = asked[place] - half_as_float32(numbers[place])
                total += difference * difference
            scores[query, item] = total
