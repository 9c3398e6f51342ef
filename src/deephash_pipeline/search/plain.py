"""The search in plain numpy, for where nothing can be compiled: slower by far, with the same answers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.search.kernels.keys import ROW_BITS
from deephash_pipeline.search.parts import SearchedPart, rows_in


def nearest_keys(queries: NDArray[np.uint64], parts: Sequence[SearchedPart], count: int) -> NDArray[np.int64]:
    """Keys of the `count` nearest rows of every query, distance << ROW_BITS | row: int64 (queries, count), in order.

    Args:
        queries: codes, uint64 (queries, words).
        parts: parts to search; at least `count` rows in them are allowed.
        count: number of rows to find, at least 1.
    """
    found = np.empty((len(queries), count), dtype=np.int64)
    for query, words in enumerate(queries):
        keys = np.concatenate([_keys(words, part) for part in parts])
        found[query] = np.sort(np.partition(keys, count - 1)[:count])
    return found


def keys_within(queries: NDArray[np.uint64], parts: Sequence[SearchedPart], radius: int) -> list[NDArray[np.int64]]:
    """Keys of the rows at most `radius` from each query, in order."""
    of_queries = []
    for words in queries:
        keys = np.concatenate([_keys(words, part) for part in parts])
        of_queries.append(np.sort(keys[keys < (radius + 1) << ROW_BITS]))
    return of_queries


def _keys(query: NDArray[np.uint64], part: SearchedPart) -> NDArray[np.int64]:
    groups = part.groups
    distances = np.bitwise_count(groups.words[:, : groups.codes] ^ query[:, None]).sum(axis=0, dtype=np.int64)
    rows = rows_in(part.allowed, part.size)
    of_rows: NDArray[np.int64] = distances[groups.code_of[rows] if len(groups.starts) else rows]
    return of_rows << ROW_BITS | (part.first_row + rows)
