"""The indexes that are compared, faiss's for binary codes under one `search`, and how good their answers are."""

import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.codes import BITS_PER_BYTE, code_words

FLAT, FLAT_UNPADDED, FLAT_MERGED = "Flat", "Flat, codes not padded", "Flat over distinct codes"
IVF, MULTI_HASH, HNSW, HNSW_MERGED = "IVF", "MultiHash", "HNSW", "HNSW over distinct codes"
# What faiss's factory builds for each.
RECIPES = {
    **dict.fromkeys((FLAT, FLAT_UNPADDED, FLAT_MERGED), "BFlat"),
    IVF: "BIVF{nlist}",
    MULTI_HASH: "BHash{nhash}x{b}",
    **dict.fromkeys((HNSW, HNSW_MERGED), "BHNSW{M}"),
}
# Families that would take most of the time if they were given all queries.
SLOW = (FLAT_UNPADDED, MULTI_HASH)
# faiss warns below 39 training codes for each list of an IVF; more than that moves recall little and costs seconds.
TRAINING_CODES_PER_LIST = 64
NO_ITEM = -1

Codes, Items = NDArray[np.uint8], NDArray[np.int64]
Answers = tuple[NDArray[np.int32], Items]
"""Distances and items, both (queries, k), nearest first; NO_ITEM where an index found fewer than k."""


class Setting(NamedTuple):
    """An index to build, and the parameters to search it with, a mapping for each point of the curve."""

    family: str
    build: Mapping[str, int] = {}
    searches: tuple[Mapping[str, int], ...] = ({},)


def _each(name: str, *values: int) -> tuple[dict[str, int], ...]:
    return tuple({name: value} for value in values)


SETTINGS = (
    Setting(FLAT),
    Setting(FLAT_UNPADDED),
    Setting(FLAT_MERGED),
    *(Setting(IVF, build, _each("nprobe", 1, 4, 16, 64)) for build in _each("nlist", 256, 1024)),
    Setting(MULTI_HASH, {"nhash": 2, "b": 24}, _each("nflip", 0, 2)),
    Setting(MULTI_HASH, {"nhash": 3, "b": 16}, _each("nflip", 0, 1)),
    Setting(MULTI_HASH, {"nhash": 4, "b": 12}, _each("nflip", 0, 1)),
    *(Setting(HNSW, build, _each("efSearch", 16, 64, 256)) for build in _each("M", 16, 32)),
    Setting(HNSW_MERGED, {"M": 16}, _each("efSearch", 16, 64, 256)),
)


class OverDistinctCodes:
    """An index of the distinct codes of a database, with the items of each; what it finds exactly stays exact."""

    def __init__(self, codes: Codes, build: Callable[[Codes], Any]) -> None:
        words = code_words(codes)
        # In order of code, equal ones in order of item.
        self.items = np.lexsort(words.T).astype(np.int32)
        in_order = words[self.items]
        differs = np.any(in_order[1:] != in_order[:-1], axis=1)
        self.starts = np.flatnonzero(np.concatenate(([True], differs)))
        self.counts = np.diff(self.starts, append=len(words))
        self.index = build(np.ascontiguousarray(in_order[self.starts]).view(np.uint8))

    def search(self, queries: Codes, k: int) -> Answers:
        """Find the nearest codes, and name the items of each until there are k."""
        code_distances, codes = self.index.search(queries, min(k, len(self.counts)))
        counts = np.where(codes == NO_ITEM, 0, self.counts[codes])
        before = np.cumsum(counts, axis=1) - counts
        taken = np.minimum(before + counts, k) - np.minimum(before, k)
        found = taken.sum(axis=1)
        # One entry for each item taken: its row among the queries, its column among the answers.
        rows = np.repeat(np.arange(len(queries)), found)
        columns = np.arange(len(rows)) - np.repeat(np.cumsum(found) - found, found)
        first_of_code = np.repeat((self.starts[codes] - before).ravel(), taken.ravel())
        distances = np.full((len(queries), k), np.iinfo(np.int32).max, dtype=np.int32)
        items = np.full((len(queries), k), NO_ITEM, dtype=np.int64)
        distances[rows, columns] = np.repeat(code_distances.ravel(), taken.ravel())
        items[rows, columns] = self.items[first_of_code + columns]
        return distances, items


class BuiltIndex:
    """An index of packed codes (items, bytes), the CPU seconds of building it, and its bytes as it is stored."""

    def __init__(self, setting: Setting, codes: Codes) -> None:
        # faiss has fast distances for codes of 8 bytes and slow ones for 6; zeros at the end change no distance.
        self.width = codes.shape[1] if setting.family == FLAT_UNPADDED else 8 * code_words(codes[:1]).shape[1]
        rows = rows_of_width(codes, self.width)
        started = time.process_time()
        merged = setting.family in (FLAT_MERGED, HNSW_MERGED)
        self.setting = setting
        self.index: Any = OverDistinctCodes(rows, partial(_faiss, setting)) if merged else _faiss(setting, rows)
        self.build_seconds = time.process_time() - started
        self.inner = self.index.index if merged else self.index
        self.size = len(import_module("faiss").serialize_index_binary(self.inner))
        if merged:
            self.size += sum(part.nbytes for part in (self.index.items, self.index.counts, self.index.starts))

    def searcher(self, queries: Codes, k: int, parameters: Mapping[str, int]) -> Callable[[], Answers]:
        """Return the search of all `queries`, packed codes (queries, bytes), as a call without arguments."""
        rows = rows_of_width(queries, self.width)

        def search() -> Answers:
            for name, value in parameters.items():
                # efSearch belongs to the graph inside of an HNSW index.
                setattr(self.inner.hnsw if name == "efSearch" else self.inner, name, value)
            answers: Answers = self.index.search(rows, k)
            return answers

        return search


def rows_of_width(codes: Codes, width: int) -> Codes:
    """Packed codes in contiguous rows of `width` bytes, zeros at the end."""
    return np.ascontiguousarray(code_words(codes).view(np.uint8)[:, :width])


def _faiss(setting: Setting, codes: Codes) -> Any:
    """Build faiss's index; it is imported here, for tables and figures are made again without it."""
    recipe, bits = RECIPES[setting.family].format(**setting.build), codes.shape[1] * BITS_PER_BYTE
    index = import_module("faiss").index_binary_factory(bits, recipe)
    if setting.family == IVF:
        index.cp.max_points_per_centroid = TRAINING_CODES_PER_LIST
        index.train(codes)
    index.add(codes)
    return index


def quality(
    database: Codes, queries: Codes, items: Items, distance_of_last: Items, strictly_nearer: Items
) -> dict[str, float | None]:
    """Say how good answers (queries, k) are: recall, and the share of strictly nearer items that are found.

    Recall is the share of answers as near as the k-th of exact search, whose distance is `distance_of_last` (queries,):
    any items that tie there are as good as others. Items nearer than that, of which there are `strictly_nearer`
    (queries,), leave no choice; where most tie, recall hides that an index misses them. Their share is the mean over
    queries that have any, None if none has. An item that is named twice counts once; distances are computed here.
    """
    differing = code_words(database)[items] ^ code_words(queries)[:, None, :]
    distances = np.bitwise_count(differing).sum(axis=2, dtype=np.int64)

    def distinct(counted: NDArray[np.bool_]) -> Items:
        in_order = np.sort(np.where(counted, items, NO_ITEM), axis=1)
        return (np.diff(in_order, axis=1, prepend=NO_ITEM) > 0).sum(axis=1)

    right, nearer = distinct(distances <= distance_of_last[:, None]), distinct(distances < distance_of_last[:, None])
    have = strictly_nearer > 0
    found = float(np.mean(nearer[have] / strictly_nearer[have])) if have.any() else None
    return {"recall": float(right.sum() / items.size), "strictly_nearer_found": found}
