"""The exponentiated loss of two blocks of a batch, compiled: value and gradient in one pass over their pairs.

With P = b_i o b_j the pair factor of `formula` takes two values per pair, and P takes K + 1 values in
all, so exponentials of codes come from a table with a row for Y = -1 and one for Y = 1. What is left for a bit is
e = exp(-|x|) with x = beta u_ik u_jk: 2 sigma(|x|) - 1 = (1 - e) / (1 + e), and the slope of sigma is e / (1 + e)^2.

In float32 the inner loop takes 26 operations of vectors, one of them a division, and no call of a function.
"""

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.extending import overload

from deephash_pipeline.common.machine_code import compiled
from deephash_pipeline.retrieval.kernels.compiled import popcount

# Rows whose pair factors are kept at a time, so that with a block of columns they stay near the core.
STRIP_ROWS = 32
# The inner loop runs over columns in whole vectors, two at a time; those left over would go one by one.
COLUMNS_AT_ONCE = 32

# Sums may be regrouped into vectors and multiplications joined with additions; infinities and NaN stay what they are.
FAST_SUMS = {"reassoc", "contract", "nsz"}

ONE, NOTHING = np.float32(1), np.float32(0)
SMALLEST_EXPONENT = np.float32(-100)
# Adding it rounds a float32 to a whole number, which then stands in its lowest bits; subtracting it gives the number.
ROUNDING = np.float32(1.5 * 2**23)
EXPONENT_SHIFT = np.int32(23)
# 2^f for f in [-1/2, 1/2]: the polynomial of least relative error, 9e-8, among those that are 1 at f = 0.
C1, C2, C3, C4, C5 = map(np.float32, (0.69314698, 0.24022242, 0.055507337, 0.0096715127, 0.0013264727))


class Batch(NamedTuple):
    """What the kernel reads of a batch, and the gradient that it adds to. Types are that of u where nothing is said.

    Attributes:
        u: (code_length, samples filled up with zeros to a multiple of `COLUMNS_AT_ONCE`).
        minus_magnitude: -|u|, of the same shape.
        gradient: gradient of the same shape.
        codes: signs of u as words, uint64 (words, samples).
        labels: int64, (samples,).
        product: P by number of differing bits, (code_length + 1,).
        exponentials: w E by Y = -1 and Y = 1 and by number of differing bits, (2, code_length + 1).
        cosh: hyperbolic cosine of 1 / code_length.
        sinh: hyperbolic sine of 1 / code_length.
        exponent_scale: beta log2(e).
    """

    u: Any
    minus_magnitude: Any
    gradient: Any
    codes: Any
    labels: Any
    product: Any
    exponentials: Any
    cosh: Any
    sinh: Any
    exponent_scale: Any


def _surrogate(_y: Any) -> Any:
    """Return 2 sigma(|x|) - 1 and the slope sigma(x) (1 - sigma(x)) for y = -|x| log2(e), in its type (compiled)."""


@overload(_surrogate, jit_options={"fastmath": {"contract"}})
def _surrogate_of_type(y: Any) -> Any:
    return _surrogate_float32 if y == numba.float32 else _surrogate_float64


def _surrogate_float32(y: Any) -> Any:
    # Relative error of e: 2e-7.
    rounded = y + ROUNDING
    fraction = y - (rounded - ROUNDING)
    square = fraction * fraction
    # In this order fewer of the multiplications wait for another.
    power = ((C5 * fraction + C4) * square + (C3 * fraction + C2)) * square + (C1 * fraction + ONE)
    bits = np.float32(power).view(np.int32) + (np.float32(rounded).view(np.int32) << EXPONENT_SHIFT)
    # So small an e counts as 0, and not as what the exponent's bits make of it.
    e = NOTHING if y < SMALLEST_EXPONENT else np.int32(bits).view(np.float32)
    inverse = ONE / (ONE + e)
    share = e * inverse
    return inverse - share, share * inverse


def _surrogate_float64(y: Any) -> Any:
    e = np.exp2(y)
    inverse = 1 / (1 + e)
    share = e * inverse
    return inverse - share, share * inverse


@compiled(fastmath=FAST_SUMS, error_model="numpy")
def _fill_pair_factors(
    batch: Any, rows: tuple[int, int], columns: tuple[int, int], differing: Any, without_bit: Any, with_bit: Any
) -> tuple[float, float]:
    """Tabulate w E Y C and w E S, zero unless row < column < number of samples; return sums of w E and w E Y P."""
    total, signed_total = 0.0, 0.0
    for row in range(rows[0], rows[1]):
        without_bit[row - rows[0]] = 0
        with_bit[row - rows[0]] = 0
        start = max(row + 1, columns[0])
        count = max(0, min(len(batch.labels), columns[1]) - start)
        distance = differing[:count]
        distance[:] = 0
        for word in range(len(batch.codes)):
            code, codes = batch.codes[word, row], batch.codes[word, start : start + count]
            for j in range(count):
                distance[j] += popcount(code ^ codes[j])
        factors = without_bit[row - rows[0], start - columns[0] :][:count]
        factors_with_bit = with_bit[row - rows[0], start - columns[0] :][:count]
        label, labels = batch.labels[row], batch.labels[start : start + count]
        row_total = row_signed_total = batch.u.dtype.type(0)
        for j in range(count):
            similar = label == labels[j]
            exponential = batch.exponentials[np.uint64(similar), distance[j]]
            signed = exponential if similar else -exponential
            factors[j] = batch.cosh * signed
            factors_with_bit[j] = batch.sinh * exponential
            row_total += exponential
            row_signed_total += signed * batch.product[distance[j]]
        total += row_total
        signed_total += row_signed_total
    return total, signed_total


@compiled(fastmath=FAST_SUMS, error_model="numpy")
def _meet(batch: Any, block: int, first: int, second: int) -> tuple[float, float, float]:
    """Add all pairs row < column of two blocks, first <= second, to the gradient of both; return sums over them."""
    columns = (second * block, min((second + 1) * block, batch.u.shape[1]))
    width = columns[1] - columns[0]
    without_bit = np.empty((STRIP_ROWS, width), dtype=batch.u.dtype)
    with_bit = np.empty((STRIP_ROWS, width), dtype=batch.u.dtype)
    differing = np.empty(width, dtype=np.uint64)
    exponential, signed_product, surrogate = 0.0, 0.0, 0.0
    last_row = min((first + 1) * block, len(batch.labels))
    for strip in range(first * block, last_row, STRIP_ROWS):
        rows = (strip, min(strip + STRIP_ROWS, last_row))
        sums = _fill_pair_factors(batch, rows, columns, differing, without_bit, with_bit)
        exponential += sums[0]
        signed_product += sums[1]
        for bit in range(len(batch.u)):
            for row in range(rows[0], rows[1]):
                # Where a block meets itself, the columns up to the row's own have no weight.
                skipped = max(0, row + 1 - columns[0]) // COLUMNS_AT_ONCE * COLUMNS_AT_ONCE
                u = batch.u[bit, columns[0] + skipped : columns[1]]
                minus_magnitude = batch.minus_magnitude[bit, columns[0] + skipped : columns[1]]
                gradient = batch.gradient[bit, columns[0] + skipped : columns[1]]
                factors = without_bit[row - rows[0], skipped:]
                factors_with_bit = with_bit[row - rows[0], skipped:]
                u_of_row = batch.u[bit, row]
                sign_of_row = math.copysign(batch.u.dtype.type(1), u_of_row)
                scaled_magnitude = batch.exponent_scale * abs(u_of_row)
                surrogate_of_row = gradient_of_row = batch.u.dtype.type(0)
                for j in range(len(u)):
                    magnitude, slope = _surrogate(scaled_magnitude * minus_magnitude[j])
                    # The bit product is the sign of the row times that of u[j], which a zero has too.
                    factor = factors[j] + sign_of_row * math.copysign(factors_with_bit[j], u[j])
                    surrogate_of_row += factor * math.copysign(magnitude, u[j])
                    weighted_slope = factor * slope
                    gradient[j] += weighted_slope * u_of_row
                    gradient_of_row += weighted_slope * u[j]
                batch.gradient[bit, row] += gradient_of_row
                surrogate += sign_of_row * surrogate_of_row
    return exponential, signed_product, surrogate


@compiled()
def _opponents(players: int, game_round: int, table: int) -> tuple[int, int]:
    """Who meets at a table: one stays, the others move round in a circle. In the last round each meets itself."""
    if game_round == players - 1:
        return table, table
    one = players - 1 if table == 0 else (game_round - table) % (players - 1)
    other = (game_round + table) % (players - 1)
    return min(one, other), max(one, other)


@compiled()
def play(batch: Any, block: int, totals: Any, game_round: int, first_table: int, last_table: int) -> None:
    """Play a round of the tournament of blocks at some of its tables.

    There is an even number of players, and so many rounds: in each but the last one there are half as many tables as
    players, in the last one as many as blocks. With an odd number of blocks the last player is none, and rests.

    Args:
        batch: a `Batch`.
        block: samples in a block.
        totals: float64 (blocks, 3), to which sums over pairs row < column are added: of w E, w E Y P, and, over all
            bits, F (2 sigma - 1).
        game_round: 0 to players - 1; rounds are played one after the other.
        first_table: the tables of a round may be played at the same time.
        last_table: one past the last of them.
    """
    blocks = len(totals)
    for table in range(first_table, last_table):
        first, second = _opponents(blocks + blocks % 2, game_round, table)
        if second < blocks:
            sums = _meet(batch, block, first, second)
            for kind in range(3):
                totals[first, kind] += sums[kind]
