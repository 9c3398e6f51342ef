"""The exponentiated loss on CUDA devices, from labels, in float32: every pair of samples once, no B x B matrix.

The batch is cut into at most `MOST_BANDS` bands. A program takes the pairs of two bands for some of the bits, tile by
tile, and is the only one that adds to its part of an array (bands, code_length, batch): what band s owes to band t
stands in [t] at the rows of s, and the reverse in [s] at those of t. The array is summed over its first axis at the
end. So nothing is added atomically, and equal inputs give equal bits.

In a tile the code product is a product of signs on tensor cores, exact in any precision. One exponential serves the
pair; for a bit are left e = exp(-|x|), 1 / (1 + e) and 12 operations, see `kernel`.
"""

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from deephash_pipeline.losses.exponentiated.formula import LOG2_E, Departures, LossAndGradient, PairSums

TILE = 64
BITS_OF_PROGRAM = 16
MOST_BANDS = 32


@triton.jit  # type: ignore[untyped-decorator]
def _pairs_of_bands(
    u: tl.tensor,
    labels: tl.tensor,
    pair_weights: tl.tensor,
    parts: tl.tensor,
    sums: tl.tensor,
    batch: tl.tensor,
    stride: tl.tensor,
    code_length: tl.tensor,
    bands: tl.tensor,
    tiles_of_band: tl.tensor,
    exponent_scale: tl.tensor,
    cosh: tl.tensor,
    sinh: tl.tensor,
    TILE: tl.constexpr,
    BITS: tl.constexpr,
) -> None:
    """Add up pairs row < column of a band of rows and a band of columns, for `BITS` bits.

    u is (code_length, stride) with zeros from `batch` on, parts (bands, code_length, stride); programs are (pair of
    bands, group of bits), and sums (pairs of bands, groups of bits, 3).
    """
    # The pairs of bands are counted row by row: (0, 0), (0, 1), ..., (1, 1), ...
    column_band = tl.program_id(0)
    row_band = 0 * column_band
    while column_band >= bands - row_band:
        column_band -= bands - row_band
        row_band += 1
    column_band += row_band
    first_bit = tl.program_id(1) * BITS
    last_bit = tl.minimum(first_bit + BITS, code_length)
    weight_of_dissimilar, weight_of_similar = tl.load(pair_weights), tl.load(pair_weights + 1)
    size_of_part = code_length * stride
    parts_of_rows = parts + column_band.to(tl.int64) * size_of_part
    parts_of_columns = parts + row_band.to(tl.int64) * size_of_part
    places = tl.arange(0, TILE)
    bits = tl.arange(0, BITS)
    exponential_sum = tl.zeros((TILE,), tl.float32)
    signed_product_sum = tl.zeros((TILE,), tl.float32)
    surrogate_sum = tl.zeros((TILE,), tl.float32)

    for row_tile in range(row_band * tiles_of_band, (row_band + 1) * tiles_of_band):
        rows = row_tile * TILE + places
        row_labels = tl.load(labels + rows, rows < batch, 0)
        for column_tile in range(tl.maximum(column_band * tiles_of_band, row_tile), (column_band + 1) * tiles_of_band):
            columns = column_tile * TILE + places
            column_labels = tl.load(labels + columns, columns < batch, 0)
            product = tl.zeros((TILE, TILE), tl.float32)
            for start in range(0, code_length, BITS):
                inside = (start + bits < code_length)[:, None]
                offsets = (start + bits)[:, None] * stride
                row_signs = tl.where(tl.load(u + offsets + rows[None, :], inside, 0.0) >= 0, 1.0, -1.0)
                column_signs = tl.where(tl.load(u + offsets + columns[None, :], inside, 0.0) >= 0, 1.0, -1.0)
                row_signs = tl.where(inside, row_signs, 0.0).to(tl.float16)
                product = tl.dot(tl.trans(row_signs), column_signs.to(tl.float16), product)
            product = product / code_length

            counted = (rows[:, None] < columns[None, :]) & (columns[None, :] < batch)
            similar = row_labels[:, None] == column_labels[None, :]
            signed_product = tl.where(similar, product, -product)
            weight = tl.where(similar, weight_of_similar, weight_of_dissimilar)
            exponential = tl.where(counted, weight * tl.exp(-signed_product), 0.0)
            exponential_sum += tl.sum(exponential, 1)
            signed_product_sum += tl.sum(exponential * signed_product, 1)
            without_bit = cosh * tl.where(similar, exponential, -exponential)
            factor_of_equal = without_bit + sinh * exponential
            factor_of_different = without_bit - sinh * exponential

            for bit in range(first_bit, last_bit):
                u_of_rows = tl.load(u + bit * stride + rows)
                u_of_columns = tl.load(u + bit * stride + columns)
                y = (exponent_scale * u_of_rows)[:, None] * u_of_columns[None, :]
                e = tl.exp2(-tl.abs(y))
                inverse = 1.0 / (1.0 + e)
                share = e * inverse
                # The sign of y is the bit product, also where y is zero.
                different = y.to(tl.int32, bitcast=True) < 0
                factor = tl.where(different, factor_of_different, factor_of_equal)
                magnitude = inverse - share
                surrogate_sum += tl.sum(factor * tl.where(different, -magnitude, magnitude), 1)
                weighted_slope = factor * (share * inverse)
                to_rows = parts_of_rows + bit * stride + rows
                to_columns = parts_of_columns + bit * stride + columns
                # Another thread may have written what this one reads, a tile ago or, on the diagonal, just now.
                tl.store(to_rows, tl.load(to_rows) + tl.sum(weighted_slope * u_of_columns[None, :], 1))
                tl.debug_barrier()
                tl.store(to_columns, tl.load(to_columns) + tl.sum(weighted_slope * u_of_rows[:, None], 0))
                tl.debug_barrier()

    own_sums = sums + 3 * (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1))
    tl.store(own_sums, tl.sum(exponential_sum, 0))
    tl.store(own_sums + 1, tl.sum(signed_product_sum, 0))
    tl.store(own_sums + 2, tl.sum(surrogate_sum, 0))


def loss_and_gradient(u: Tensor, labels: Tensor, departures: Departures) -> LossAndGradient:
    """Compute the loss of a batch without waiting for the device.

    Memory: up to `MOST_BANDS` + 2 times that of u.

    Args:
        u: float32 on a CUDA device, shape (batch, code_length).
        labels: int64 on the same device, shape (batch,).
        departures: departures from the paper.
    """
    batch, code_length = u.shape
    tiles = max(1, triton.cdiv(batch, TILE))
    tiles_of_band = triton.cdiv(tiles, MOST_BANDS)
    bands = triton.cdiv(tiles, tiles_of_band)
    stride = bands * tiles_of_band * TILE
    groups = triton.cdiv(code_length, BITS_OF_PROGRAM)
    columns = u.new_zeros(code_length, stride)
    # Adding zero makes a negative zero a positive one, whose bit is 1.
    columns[:, :batch] = u.T + 0.0
    pair_weights, pairs = _pair_weights(labels, departures.balance_pairs)
    parts = u.new_zeros(bands, code_length, stride)
    sums = u.new_empty(bands * (bands + 1) // 2, groups, 3)
    # Triton launches on the current device, whichever its arguments are on.
    with torch.cuda.device_of(u):  # type: ignore[no-untyped-call]
        _pairs_of_bands[(len(sums), groups)](
            columns,
            labels.contiguous(),
            pair_weights,
            parts,
            sums,
            batch,
            stride,
            code_length,
            bands,
            tiles_of_band,
            departures.temperature * LOG2_E,
            math.cosh(1 / code_length),
            math.sinh(1 / code_length),
            TILE=TILE,
            BITS=BITS_OF_PROGRAM,
            enable_fp_fusion=True,
        )
    # A pair stands once in the sums of the kernel; sums of codes are in those of every group of bits.
    exponential, signed_product = (2 / pairs * sums[:, 0, kind].double().sum() for kind in range(2))
    totals = PairSums(exponential, signed_product, 2 / pairs * sums[:, :, 2].double().sum())
    gradient = parts.sum(0)[:, :batch].T * (departures.gradient_scale(code_length) / pairs)
    return LossAndGradient(totals.loss(code_length, departures).float(), gradient.contiguous(), exponential.float())


def _pair_weights(labels: Tensor, balance_pairs: bool) -> tuple[Tensor, int]:
    """Weights of a pair of different labels and of equal ones, (2,), to be divided by the number that is returned."""
    batch = len(labels)
    pairs = max(1, batch * (batch - 1))
    if not balance_pairs:
        return labels.new_ones(2, dtype=torch.float32), pairs
    in_order = labels.sort().values
    ends, starts = (torch.searchsorted(in_order, in_order, right=right) for right in (True, False))
    similar = (ends - starts).sum() - batch
    numbers = torch.stack([batch * (batch - 1) - similar, similar])
    kinds = (numbers > 0).sum()
    return torch.where(numbers > 0, pairs / (kinds * numbers.clamp_min(1)), 0.0).float(), pairs
