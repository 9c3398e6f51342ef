"""Distances between a query and features of int8, where they lie in memory or in a mapped file.

The query is rounded to 28 bits, in two planes of 16, and multiplied in whole numbers: a processor takes two products of
16 bits and their sum at a time, and a candidate costs little more than to fetch it.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from deephash_pipeline.common.machine_code import compiled
from deephash_pipeline.hamming.kernels.features import LINE, fetch_line
from deephash_pipeline.hamming.kernels.vectors import cgutils

_tuple_of: Any = types.UniTuple
LARGEST, FINER = 32_767, 8_192
"""The largest number of the first plane, and how many steps of the second make one of the first."""
STEP_LENGTH = 32
PRODUCTS_AT_A_TIME = 4096
"""Sums of so many products fit into 32 bits for each number of a vector."""
INT8_AHEAD = 6
"""Rows lie anywhere: the processor is told of one while it works on others."""


def _summed(_context: Any, _rows: Any, _byte: Any, _planes: Any, _first: Any, _second: Any, _steps: Any) -> Any:
    """Sums of products of some numbers, STEP_LENGTH at a time, of a row with two planes of a query, and with itself.

    Its arguments:
        rows: int8; the first number is
        byte: here.
        planes: int16; the numbers of the query begin
        first, second: here.
        steps: how many times STEP_LENGTH.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, planes = (context.make_array(signature.args[i])(context, builder, arguments[i]).data for i in (0, 2))
        byte, first, second, steps = arguments[1], arguments[3], arguments[4], arguments[5]
        features = context.codegen().magic_tuple()[2]
        lanes = STEP_LENGTH if "+avx512bw" in features else STEP_LENGTH // 2
        small, wide = ir.VectorType(ir.IntType(8), lanes), ir.VectorType(ir.IntType(16), lanes)
        in_pairs = "+avx2" in features
        total = ir.VectorType(ir.IntType(32), lanes // 2 if in_pairs else lanes)

        def load(memory: Any, at: Any, kind: Any) -> Any:
            return builder.load(builder.bitcast(builder.gep(memory, [at]), kind.as_pointer()), align=1)

        def products(a: Any, b: Any) -> Any:
            if not in_pairs:
                return builder.mul(builder.sext(a, total), builder.sext(b, total))
            name = "llvm.x86.avx512.pmaddw.d.512" if lanes == STEP_LENGTH else "llvm.x86.avx2.pmadd.wd"
            kind = ir.FunctionType(total, [wide, wide])
            return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [a, b])

        sums = [cgutils.alloca_once_value(builder, total([0] * total.count)) for _ in range(3)]
        with cgutils.for_range(builder, builder.mul(steps, steps.type(STEP_LENGTH // lanes))) as loop:
            at = builder.mul(loop.index, loop.index.type(lanes))
            numbers = builder.sext(load(rows, builder.add(byte, at), small), wide)
            others = [load(planes, builder.add(place, at), wide) for place in (first, second)]
            for summed, other in zip(sums, (*others, numbers), strict=True):
                builder.store(builder.add(builder.load(summed), products(numbers, other)), summed)
        long = ir.VectorType(ir.IntType(64), total.count)
        kind = ir.FunctionType(ir.IntType(64), [long])
        add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.add.v{total.count}i64")
        found = [builder.call(add, [builder.sext(builder.load(summed), long)]) for summed in sums]
        return context.make_tuple(builder, signature.return_type, found)

    number = types.int64
    return _tuple_of(number, 3)(_rows, number, _planes, number, number, number), generate


summed: Any = intrinsic(_summed)


@compiled()
def squared_distances_of_int8(
    first: int,
    stop: int,
    z: NDArray[np.float32],
    rows: NDArray[np.int64],
    first_row: int,
    features: NDArray[np.int8],
    scores: NDArray[np.float32],
) -> None:
    """Write the squared Euclidean distances of some queries to those of their rows that a part of the index has.

    Args:
        first: the first query.
        stop: the query after the last.
        z: queries, float32 (queries, width).
        rows: int64 (queries, items).
        first_row: number of the part's first row.
        features: features of the part, int8 (rows, width + 4), whose last four bytes are a float32, the scale.
        scores: float32 (queries, items), written.
    """
    width, size, items = z.shape[1], len(features), rows.shape[1]
    stride = features.shape[1]
    planes = np.empty((2, width), dtype=np.int16)
    for query in range(first, stop):
        largest, squared = 0.0, 0.0
        for place in range(width):
            largest = max(largest, abs(np.float64(z[query, place])))
            squared += np.float64(z[query, place]) ** 2
        # A query of zeros alone has any step.
        step = largest / LARGEST if largest else 1.0
        for place in range(width):
            coarse = np.rint(z[query, place] / step)
            planes[0, place] = np.int16(coarse)
            planes[1, place] = np.int16(np.rint((z[query, place] / step - coarse) * FINER))
        for item in range(items):
            row = rows[query, item] - first_row
            if row < 0 or row >= size:
                continue
            later = rows[query, min(item + INT8_AHEAD, items - 1)] - first_row
            if 0 <= later < size:
                for byte in range(later * stride, (later + 1) * stride, LINE):
                    fetch_line(features, byte)
            coarse_sum, fine_sum, own = 0, 0, 0
            place = 0
            while width - place >= STEP_LENGTH:
                steps = min(width - place, PRODUCTS_AT_A_TIME) // STEP_LENGTH
                sums = summed(features, row * stride + place, planes, place, width + place, steps)
                coarse_sum, fine_sum, own = coarse_sum + sums[0], fine_sum + sums[1], own + sums[2]
                place += steps * STEP_LENGTH
            while place < width:
                number: Any = np.int64(features[row, place])
                coarse_sum += number * planes[0, place]
                fine_sum += number * planes[1, place]
                own += number * number
                place += 1
            scale = np.float64(features[row, width:].view(np.float32)[0])
            product = step * (coarse_sum + fine_sum / FINER)
            scores[query, item] = max(0.0, squared + scale * (scale * own - 2 * product))
