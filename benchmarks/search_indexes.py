"""The indexes that are compared, faiss's for binary codes behind one `search`, and what their answers are worth."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError
from deephash_pipeline.retrieval.codes import BITS_PER_BYTE, code_words

FLAT, FLAT_UNPADDED, FLAT_MERGED = "Flat", "Flat, codes not padded", "Flat over distinct codes"
IVF, MULTI_HASH, HNSW, HNSW_MERGED = "IVF", "MultiHash", "HNSW", "HNSW over distinct codes"

# Families that would take most of the time if they were given all queries.
SLOW = (FLAT_UNPADDED, MULTI_HASH)

# faiss warns below 39 training codes for each list of an IVF; more than that moves recall little and costs seconds.
TRAINING_CODES_PER_LIST = 64
NO_ITEM = -1

Answers = tuple[NDArray[np.int32], NDArray[np.int64]]
"""Distances and items, both (queries, k), nearest first; NO_ITEM where an index found fewer than k."""


class Index(Protocol):
    """What all indexes can do."""

    def search(self, queries: NDArray[np.uint8], k: int) -> Answers:
        """Find the k nearest items of every query."""


@dataclass(frozen=True)
class Setting:
    """An index to build, and how to search it.

    Attributes:
        family: one of the names above.
        build: parameters that the index is built with.
        searches: parameters that can change between searches, one mapping for each point of the curve.
    """

    family: str
    build: Mapping[str, int] = field(default_factory=dict)
    searches: tuple[Mapping[str, int], ...] = ({},)


SETTINGS = (
    Setting(FLAT),
    Setting(FLAT_UNPADDED),
    Setting(FLAT_MERGED),
    *(Setting(IVF, {"nlist": nlist}, tuple({"nprobe": nprobe} for nprobe in (1, 4, 16, 64))) for nlist in (256, 1024)),
    *(
        Setting(MULTI_HASH, {"nhash": nhash, "b": b}, tuple({"nflip": nflip} for nflip in nflips))
        for nhash, b, nflips in ((2, 24, (0, 2)), (3, 16, (0, 1)), (4, 12, (0, 1)))
    ),
    *(Setting(HNSW, {"M": m}, tuple({"efSearch": ef} for ef in (16, 64, 256))) for m in (16, 32)),
    Setting(HNSW_MERGED, {"M": 16}, tuple({"efSearch": ef} for ef in (16, 64, 256))),
)


@dataclass(frozen=True, eq=False)
class BuiltIndex:
    """An index of a database.

    Attributes:
        setting: what it was built from.
        index: what is searched.
        bytes_per_code: width of the rows that it takes.
        build_seconds: CPU time of building, one thread.
        size: bytes of the stored index.
    """

    setting: Setting
    index: Index
    bytes_per_code: int
    build_seconds: float
    size: int

    def searcher(self, queries: NDArray[np.uint8], k: int, parameters: Mapping[str, int]) -> Callable[[], Answers]:
        """Return the search of all `queries`, packed codes (queries, bytes), as a call without arguments."""
        rows = rows_of_width(queries, self.bytes_per_code)

        def search() -> Answers:
            set_search_parameters(self.index, parameters)
            return self.index.search(rows, k)

        return search


class OverDistinctCodes:
    """An index of the distinct codes of a database, with the list of its items for each.

    Equal codes are equally far from any query: k nearest codes hold k nearest items, so what the index finds exactly
    stays exact.

    Args:
        codes: uint8 (items, bytes), bytes a multiple of 8.
        build: makes the index of the distinct codes, which are given to it in the same form.
    """

    def __init__(self, codes: NDArray[np.uint8], build: Callable[[NDArray[np.uint8]], Any]) -> None:
        words = code_words(codes)
        # In order of code, equal ones in order of item.
        self.items = np.lexsort(words.T).astype(np.int32)
        in_order = words[self.items]
        differs = np.any(in_order[1:] != in_order[:-1], axis=1)
        self.starts = np.flatnonzero(np.concatenate(([True], differs)))
        self.counts = np.diff(self.starts, append=len(words))
        self.index = build(np.ascontiguousarray(in_order[self.starts]).view(np.uint8))

    def search(self, queries: NDArray[np.uint8], k: int) -> Answers:
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


def build_index(setting: Setting, codes: NDArray[np.uint8]) -> BuiltIndex:
    """Build the index of a setting.

    Args:
        setting: family and parameters.
        codes: the database, packed codes of shape (items, bytes).

    Raises:
        InputError: the family is unknown, or the codes are too short for a MultiHash of these parameters.
    """
    if setting.family not in BUILDERS:
        raise InputError(f"unknown index `{setting.family}`: choose one of {', '.join(BUILDERS)}")
    taken_bits = setting.build.get("nhash", 0) * setting.build.get("b", 0)
    if taken_bits > codes.shape[1] * BITS_PER_BYTE:
        raise InputError(f"a MultiHash of {taken_bits} bits needs longer codes: lower nhash or b")
    # faiss has fast distances for codes of 8 bytes and slow ones for 6; zeros at the end change no distance.
    width = codes.shape[1] if setting.family == FLAT_UNPADDED else padded_width(codes)
    rows = rows_of_width(codes, width)
    started = time.process_time()
    index = BUILDERS[setting.family](rows, **setting.build)
    return BuiltIndex(setting, index, width, time.process_time() - started, stored_size(index))


def padded_width(codes: NDArray[np.uint8]) -> int:
    """Bytes of a code that is filled up to whole words of 64 bits."""
    return code_words(codes[:0]).view(np.uint8).shape[1]


def rows_of_width(codes: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Packed codes in contiguous rows of `width` bytes, zeros at the end."""
    return np.ascontiguousarray(code_words(codes).view(np.uint8)[:, :width])


def _flat(codes: NDArray[np.uint8]) -> Any:
    return _filled(_faiss().IndexBinaryFlat(codes.shape[1] * BITS_PER_BYTE), codes)


def _inverted_file(codes: NDArray[np.uint8], nlist: int) -> Any:
    bits = codes.shape[1] * BITS_PER_BYTE
    index = _faiss().IndexBinaryIVF(_faiss().IndexBinaryFlat(bits), bits, nlist)
    index.cp.max_points_per_centroid = TRAINING_CODES_PER_LIST
    index.train(codes)
    return _filled(index, codes)


def _multi_hash(codes: NDArray[np.uint8], nhash: int, b: int) -> Any:
    return _filled(_faiss().IndexBinaryMultiHash(codes.shape[1] * BITS_PER_BYTE, nhash, b), codes)


def _graph(codes: NDArray[np.uint8], M: int) -> Any:
    return _filled(_faiss().IndexBinaryHNSW(codes.shape[1] * BITS_PER_BYTE, M), codes)


def _filled(index: Any, codes: NDArray[np.uint8]) -> Any:
    index.add(codes)
    return index


def _faiss() -> Any:
    """Import faiss when an index is built: tables and figures are made again without it."""
    import faiss  # noqa: PLC0415 (see above)

    return faiss


BUILDERS: Mapping[str, Callable[..., Any]] = {
    FLAT: _flat,
    FLAT_UNPADDED: _flat,
    FLAT_MERGED: lambda codes: OverDistinctCodes(codes, _flat),
    IVF: _inverted_file,
    MULTI_HASH: _multi_hash,
    HNSW: _graph,
    HNSW_MERGED: lambda codes, M: OverDistinctCodes(codes, lambda distinct: _graph(distinct, M)),
}


def set_search_parameters(index: Any, parameters: Mapping[str, int]) -> None:
    """Set what can change between searches; efSearch belongs to the graph inside of an HNSW index."""
    inner = index.index if isinstance(index, OverDistinctCodes) else index
    for name, value in parameters.items():
        setattr(inner.hnsw if name == "efSearch" else inner, name, value)


def stored_size(index: Any) -> int:
    """Bytes of an index as it is stored, codes and all."""
    if isinstance(index, OverDistinctCodes):
        lists = (index.items, index.counts, index.starts)
        return stored_size(index.index) + sum(part.nbytes for part in lists)
    return len(_faiss().serialize_index_binary(index))


def recall(
    database: NDArray[np.uint8],
    queries: NDArray[np.uint8],
    items: NDArray[np.int64],
    distance_of_last: NDArray[np.integer[Any]],
) -> float:
    """Share of answers that are right, with ties: an item is right if it is as near as the k-th of exact search.

    Any k of the items that tie are as good as any others, so exact search has recall 1 in whatever order it meets
    them. An item that is named twice counts once; distances are computed here, not believed.

    Args:
        database: packed codes (items, bytes).
        queries: packed codes (queries, bytes).
        items: answers (queries, k), NO_ITEM where there is none.
        distance_of_last: distance of the k-th nearest item (queries,).
    """
    differing = code_words(database)[items] ^ code_words(queries)[:, None, :]
    distances = np.bitwise_count(differing).sum(axis=2, dtype=np.int64)
    right = np.where((items != NO_ITEM) & (distances <= distance_of_last[:, None]), items, NO_ITEM)
    in_order = np.sort(right, axis=1)
    distinct = np.diff(in_order, axis=1, prepend=NO_ITEM) > 0
    return float(distinct.sum() / items.size)
