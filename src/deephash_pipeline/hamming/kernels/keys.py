"""Keys: the part of a query that a scan keeps while it looks for the k nearest items.

*Keys* are distance and row in one number (in place of a code's first row, the code itself where rows are found by their
code: their order is the same). Beside them are two counts for every distance: of items found, and of those among them
that certainly precede all that are still to come (*firm* ones). A code at distance d is of use as long as fewer than k
items are nearer than d or firm at d; the largest such d is the query's *limit*, and it only falls. Codes come in the
order of their first items, so as soon as k items are found below a distance, codes at that distance, which would tie
and come later, are not even looked at.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.kernels.compiled import inner

# A key is distance << ROW_BITS | row, or | the number of the part's first row + code.
ROW_BITS = 40
ROW_MASK = (1 << ROW_BITS) - 1
# So few keys are sorted where they are.
FEW_KEYS = 32
LIMIT, NEARER, KEYS, STATUS = 0, 1, 2, 3
"""Columns of a query's status: its limit, items nearer than that, keys; and how many columns there are."""


@inner
def lower_limit(k: int, query: int, counts: Any, firm: Any, status: Any) -> None:
    """Lower the limit of a query as far as what was found allows."""
    while status[query, LIMIT] >= 0 and status[query, NEARER] + firm[query, status[query, LIMIT]] >= k:
        status[query, LIMIT] -= 1
        if status[query, LIMIT] >= 0:
            status[query, NEARER] -= counts[query, status[query, LIMIT]]


@inner
def _drop_far(k: int, keys: Any, counts: Any, status: Any) -> int:
    """Drop the keys of items further away than the k-th, as far as they are found; return the distance of that one."""
    last, items = 0, counts[0]
    while items < k and last + 1 < len(counts):
        last += 1
        items += counts[last]
    beyond, kept = np.int64(last + 1) << ROW_BITS, 0
    for place in range(status[KEYS]):
        keys[kept] = keys[place]
        kept += int(keys[place] < beyond)
    status[KEYS] = kept
    return last


@inner
def sink(keys: Any, top: int, end: int) -> None:
    """Bring keys[top:end] into the order of a heap, the largest first, if only its first may be out of order."""
    while 2 * top + 1 < end:
        child = 2 * top + 1
        if child + 1 < end and keys[child + 1] > keys[child]:
            child += 1
        if keys[top] >= keys[child]:
            break
        keys[top], keys[child] = keys[child], keys[top]
        top = child


@inner
def sort(keys: Any, size: int) -> None:
    """Sort keys[:size] by a heap: numba's own sort takes seconds to compile."""
    for top in range(size // 2 - 1, -1, -1):
        sink(keys, top, size)
    for end in range(size - 1, 0, -1):
        keys[0], keys[end] = keys[end], keys[0]
        sink(keys, 0, end)


@inner
def make_room(k: int, keys: Any, counts: Any, status: Any) -> None:
    """Drop keys that can have no part in the answer; at most 2 k are left."""
    last = _drop_far(k, keys, counts, status)
    if status[KEYS] > 2 * k:
        sort(keys, status[KEYS])
        # Keys have the first item of their code: after the k-th first item at the last distance, none is of use.
        nearer = 0
        while keys[nearer] >> ROW_BITS < last:
            nearer += 1
        status[KEYS] = nearer + k


@inner
def sort_keys(k: int, keys: NDArray[np.int64], counts: NDArray[np.int64], status: NDArray[np.int64]) -> None:
    """Bring the keys of a query into the order of (distance, row) and drop those that cannot be among the nearest k."""
    last = _drop_far(k, keys, counts, status)
    if status[KEYS] <= FEW_KEYS:
        for place in range(1, status[KEYS]):
            key, free = keys[place], place
            while free and keys[free - 1] > key:
                keys[free] = keys[free - 1]
                free -= 1
            keys[free] = key
        return
    # Rows come nearly always in order, so the keys are dealt by distance, and sorted only if that was not enough.
    places = np.zeros(last + 2, dtype=np.int64)
    dealt = keys[: status[KEYS]].copy()
    for key in dealt:
        places[(key >> ROW_BITS) + 1] += 1
    for distance in range(last):
        places[distance + 1] += places[distance]
    for key in dealt:
        keys[places[key >> ROW_BITS]] = key
        places[key >> ROW_BITS] += 1
    for place in range(1, len(dealt)):
        if keys[place - 1] > keys[place]:
            sort(keys, len(dealt))
            break
