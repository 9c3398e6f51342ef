"""The exponentiated loss on the CPU, from labels: every pair of samples once, and no B x B matrix.

The batch is cut into blocks, and blocks meet as teams do in a round-robin tournament: in a round every block has one
opponent, so threads never write the same part of the gradient, and each part is summed in the same order whatever the
number of threads.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.losses.exponentiated.formula import LOG2_E, Departures, LossAndGradient, PairSums
from deephash_pipeline.losses.exponentiated.kernel import COLUMNS_AT_ONCE, Batch, play

SMALL_BLOCK, LARGE_BLOCK = 128, 256
LARGEST_BATCH_OF_SMALL_BLOCKS = 1024
# Below, starting a second thread takes as long as it saves.
SMALLEST_BATCH_OF_THREADS = 1024


def loss_and_gradient(u: Tensor, labels: Tensor, departures: Departures) -> LossAndGradient:
    """Compute the loss of a batch on as many threads as PyTorch uses; their number changes nothing in the result.

    Args:
        u: float32 or float64 on the CPU, shape (batch, code_length).
        labels: int64, shape (batch,).
        departures: departures from the paper.
    """
    code_length = u.shape[1]
    u_array, labels_array = u.numpy(), np.ascontiguousarray(labels.numpy())
    dissimilar, similar = _pair_weights(labels_array, departures.balance_pairs)
    # The kernel gets weights near 1, so that no product in float32 becomes too small for it.
    largest = max(dissimilar, similar)
    if largest == 0:
        return LossAndGradient(u.new_zeros(()), torch.zeros_like(u), u.new_zeros(()))
    weights = dissimilar / largest, similar / largest
    sums, gradient = _sums_over_pairs(u_array, labels_array, weights, departures.temperature)
    gradient = np.ascontiguousarray(gradient) * u_array.dtype.type(largest * departures.gradient_scale(code_length))
    value, true_loss = largest * sums.loss(code_length, departures), largest * sums.exponential
    return LossAndGradient(
        torch.tensor(value, dtype=u.dtype), torch.from_numpy(gradient), torch.tensor(true_loss, dtype=u.dtype)
    )


def _pair_weights(labels: NDArray[np.int64], balance_pairs: bool) -> tuple[float, float]:
    """Weight of an ordered pair of different labels, and of equal ones; 0 if there is no such pair."""
    _, sizes = np.unique(labels, return_counts=True)
    similar = int(np.sum(sizes * (sizes - 1)))
    dissimilar = len(labels) * (len(labels) - 1) - similar
    if balance_pairs:
        kinds = (dissimilar > 0) + (similar > 0)
        return tuple(1 / (kinds * pairs) if pairs else 0.0 for pairs in (dissimilar, similar))  # type: ignore[return-value]
    return tuple(1 / (dissimilar + similar) if pairs else 0.0 for pairs in (dissimilar, similar))  # type: ignore[return-value]


def _sums_over_pairs(
    u: NDArray[np.floating[Any]], labels: NDArray[np.int64], pair_weights: tuple[float, float], temperature: float
) -> tuple[PairSums, NDArray[np.floating[Any]]]:
    """Return the sums, and that of F sigma (1 - sigma) u_jk over j as an array (batch, code_length)."""
    batch, code_length = u.shape
    block = SMALL_BLOCK if batch <= LARGEST_BATCH_OF_SMALL_BLOCKS else LARGE_BLOCK
    columns = np.zeros((3, code_length, -(-batch // COLUMNS_AT_ONCE) * COLUMNS_AT_ONCE), dtype=u.dtype)
    # Adding zero makes a negative zero a positive one, whose bit is 1.
    np.add(u.T, 0, out=columns[0, :, :batch])
    np.negative(np.abs(columns[0]), out=columns[1])
    product = 1 - 2 * np.arange(code_length + 1) / code_length
    exponentials = np.stack([pair_weights[0] * np.exp(product), pair_weights[1] * np.exp(-product)])
    arguments = Batch(
        u=columns[0],
        minus_magnitude=columns[1],
        gradient=columns[2],
        codes=_packed_codes(u),
        labels=labels,
        product=product.astype(u.dtype),
        exponentials=exponentials.astype(u.dtype),
        cosh=u.dtype.type(math.cosh(1 / code_length)),
        sinh=u.dtype.type(math.sinh(1 / code_length)),
        exponent_scale=u.dtype.type(temperature * LOG2_E),
    )
    totals = np.zeros((-(-batch // block), 3))
    _play_all_rounds(arguments, block, totals, torch.get_num_threads() if batch >= SMALLEST_BATCH_OF_THREADS else 1)
    # The kernel counts a pair once.
    sums = PairSums(*(2 * float(total) for total in totals.sum(axis=0)))
    return sums, columns[2, :, :batch].T


def _packed_codes(u: NDArray[np.floating[Any]]) -> NDArray[np.uint64]:
    """Signs of u as words of 64 bits, (words, batch)."""
    batch, code_length = u.shape
    packed = np.zeros((batch, 8 * -(-code_length // 64)), dtype=np.uint8)
    packed[:, : -(-code_length // 8)] = np.packbits(u >= 0, axis=1)
    return np.ascontiguousarray(packed.view(np.uint64).T)


def _play_all_rounds(batch: Batch, block: int, totals: NDArray[np.float64], threads: int) -> None:
    blocks = len(totals)
    players = blocks + blocks % 2
    tables = [*[players // 2] * (players - 1), blocks]
    threads = min(threads, players // 2)
    if threads == 1:
        for game_round in range(players):
            play(batch, block, totals, game_round, 0, tables[game_round])
        return

    # Not `play` itself: a pool that calls the compiled function directly loses a millisecond in every round.
    def play_share(game_round: int, first_table: int, last_table: int) -> None:
        play(batch, block, totals, game_round, first_table, last_table)

    with ThreadPoolExecutor(threads) as pool:
        for game_round in range(players):
            shares = pairwise(share * tables[game_round] // threads for share in range(threads + 1))
            for done in [pool.submit(play_share, game_round, *share) for share in shares]:
                done.result()
