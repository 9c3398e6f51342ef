"""The smallest of some scores, in order."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.kernels.keys import sink, sort
from deephash_pipeline.retrieval.kernels.compiled import kernel

_PLACE_BITS = 32
_PLACE_MASK = (1 << _PLACE_BITS) - 1
_SIZE_BITS = 0x7FFF_FFFF
_NONE = np.iinfo(np.int64).max


def least(scores: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Places of the k smallest scores of each query, ascending, of equal ones the first: int64 (queries, k).

    Args:
        scores: float32 (queries, items).
        k: number of places; all are given where there are fewer.

    Example:
        >>> least(np.array([[3, 1, 2, 1]], dtype=np.float32), 3)
        array([[1, 3, 2]])
    """
    places: NDArray[np.int64] = least_of_first(scores, k, [scores.shape[1]])[0]
    return places


def least_of_first(scores: NDArray[np.float32], k: int, firsts: Sequence[int]) -> NDArray[np.int64]:
    """Do what `least` does among the first items, for each of some numbers of them.

    Args:
        scores: float32 (queries, items).
        k: number of places.
        firsts: numbers of items, ascending, each at least k or all.

    Returns:
        Places, int64 (numbers, queries, k).
    """
    places = np.empty((len(firsts), len(scores), min(k, scores.shape[1])), dtype=np.int64)
    if places.size:
        _list_least(scores.view(np.int32), np.array(firsts, dtype=np.int64), places)
    return places


@kernel
def _list_least(scores: Any, firsts: Any, places: Any) -> None:
    """Keep the least in a heap whose first is the largest: a score that is not less is passed over."""
    _, queries, k = places.shape
    keys = np.empty(k, dtype=np.int64)
    for query in range(queries):
        for place in range(k):
            keys[place] = _NONE
        of_query, item = scores[query], 0
        for number in range(len(firsts)):
            while item < min(firsts[number], len(of_query)):
                # The bits of a float32 are in the order of its size.
                size: Any = np.int64(of_query[item])
                if size < 0:
                    size = -(size & _SIZE_BITS)
                key = size << _PLACE_BITS | item
                if key < keys[0]:
                    keys[0] = key
                    sink(keys, 0, k)
                item += 1
            found = places[number, query]
            for place in range(k):
                found[place] = keys[place]
            sort(found, k)
            for place in range(k):
                found[place] &= _PLACE_MASK
