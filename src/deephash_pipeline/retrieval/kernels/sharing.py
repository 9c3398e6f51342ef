"""The counting kernel for several labels an item: how many items share 0, 1, 2, ... labels with a query, by distance.

Distances are summed as in `histograms`, 64 items at a time, and so are shared labels: a label is a bitmap of the items
that carry it, the bitmaps of a query's labels are added up by half adders, and the items that share r of them are an
`and` of the sum's binary digits.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.machine_code import compiled
from deephash_pipeline.retrieval.kernels.histograms import (
    ALL,
    BLOCK_ITEMS,
    BLOCK_WORDS,
    MARKED,
    NO_BITS,
    count_marked,
    counting_memory,
    entries_of,
    mark,
    sum_differences,
)


@compiled()
def _add_labels(label_maps: Any, labels: Any, first_word: int, shared: Any) -> None:
    """Count, for every item of a block, the labels it shares: row i of shared becomes binary digit i of the counts.

    Args:
        label_maps: uint64 (labels, words), one bit for each item that carries the label.
        labels: labels of the query.
        first_word: number of the first word of the block.
        shared: uint64 (digits + 1, BLOCK_WORDS), the last row for carries.
    """
    digits = len(shared) - 1
    carries = shared[digits]
    shared[:digits] = NO_BITS
    for label in labels:
        of_label = label_maps[label]
        for word in range(BLOCK_WORDS):
            carries[word] = of_label[first_word + word]
        for digit in range(digits):
            row = shared[digit]
            for word in range(BLOCK_WORDS):
                row[word], carries[word] = row[word] ^ carries[word], row[word] & carries[word]


@compiled()
def _mark_sharing(grade: int, shared: Any, planes: Any) -> bool:
    """Write into row MARKED the items that share so many labels, at least one; return whether there are any."""
    marked = planes[MARKED * BLOCK_WORDS : (MARKED + 1) * BLOCK_WORDS]
    marked[:] = ALL
    for digit in range(len(shared) - 1):
        flip = NO_BITS if grade >> digit & 1 else ALL
        row = shared[digit]
        for word in range(BLOCK_WORDS):
            marked[word] &= row[word] ^ flip
    found = NO_BITS
    for word in range(BLOCK_WORDS):
        found |= marked[word]
    return bool(found != NO_BITS)


@compiled()
def count_sharing(
    first_query: int,
    stop_query: int,
    query_words: NDArray[np.uint64],
    tables: NDArray[np.uint64],
    label_maps: NDArray[np.uint64],
    labels: NDArray[np.int64],
    label_ends: NDArray[np.int64],
    items: int,
    code_length: int,
    counts: NDArray[np.int64],
) -> None:
    """Add to counts[r, q, s] the items that share r labels with q, at the distance s.

    Args:
        first_query: this and what is not named here as for `count_items`.
        stop_query: one after the last query.
        query_words: codes.
        tables: tables of `difference_tables`.
        label_maps: uint64 (labels, blocks x BLOCK_WORDS), one bit for each item that carries the label.
        labels: int64, those of all queries, one query after another.
        label_ends: int64 (queries,), where those of a query end.
        items: number of items.
        code_length: bits per code.
        counts: int64 (grades, queries, code_length + 1 filled up to a multiple of eight); `counts[0]` takes all items.
    """
    planes = counting_memory(tables)
    entries = entries_of(query_words, first_query, stop_query, tables.shape[1])
    digits = 0
    while len(counts) - 1 >> digits:
        digits += 1
    shared = np.zeros((digits + 1, BLOCK_WORDS), dtype=np.uint64)
    for block in range(tables.shape[0]):
        table = tables[block].reshape(-1)
        for query in range(first_query, stop_query):
            sum_differences(table, entries[query - first_query], planes)
            first, stop_word = mark(0, min(items - block * BLOCK_ITEMS, BLOCK_ITEMS), planes)
            count_marked(planes, first, stop_word, code_length, counts[0, query])
            own = labels[label_ends[query - 1] if query else 0 : label_ends[query]]
            _add_labels(label_maps, own, block * BLOCK_WORDS, shared)
            for grade in range(1, min(len(own) + 1, len(counts))):
                if _mark_sharing(grade, shared, planes):
                    count_marked(planes, np.uint64(0), np.uint64(BLOCK_WORDS), code_length, counts[grade, query])
