"""All pairs of near codes, exactly, in order and in flat memory: which tables to make, and on how many threads."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import installing
from deephash_pipeline.hamming.answers import Ids, ItemId
from deephash_pipeline.hamming.kernels.pairs import DISTANCE_BITS, fill_table, hash_rows, pairs_in_table
from deephash_pipeline.hamming.snapshots import Snapshot
from deephash_pipeline.retrieval.codes import code_words
from deephash_pipeline.retrieval.kernels.compiled import in_threads, threads_to_use

PAIRED_AT_ONCE = 65_536
# Pairs that are in memory at a time, and of those a block has.
PAIRS_AT_ONCE = 1 << 23
PAIRS_IN_BLOCK = 1 << 18
# Rows that costs are estimated from, and choices of parts that are tried on them.
SAMPLED_ROWS = 50_000
SAMPLED_CHOICES = 4
MOST_TABLES = 20_000
# Nanoseconds, about: to have a row in a table, to read a word of it, and to compare it with one word of another.
SORTED_ROW, HASHED_WORD, COMPARED_WORD = 60.0, 1.5, 0.25
# A hash of so many bits more than rows take is hardly ever that of two codes.
SPARE_BITS = 6
LEAST_ROOM = 4096
WORD_BITS = 64
SHARES_PER_THREAD = 4
# Rows that a slice of a table has on average, and slices that a processor fills at a time.
SLICE_ROWS, MOST_SLICES = 4096, 2048


@dataclass(frozen=True, eq=False)
class NearPairs:
    """Some pairs of items, in the order of (first, second) as items were added.

    Attributes:
        first: ids, (pairs,), int64 or object holding `str`; the item of a pair that was added first, or that of the
            index that was asked.
        second: ids, likewise.
        distances: int32 (pairs,).

    Example:
        >>> from deephash_pipeline.hamming import HammingIndex
        >>> index = HammingIndex(8)
        >>> index.add(["a", "b", "c"], np.array([[0], [255], [1]], dtype=np.uint8))
        >>> [list(pairs) for pairs in index.pairs(radius=1)]
        [[('a', 'c', 1)]]
    """

    first: Ids
    second: Ids
    distances: NDArray[np.int32]

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.distances)

    def __iter__(self) -> Iterator[tuple[ItemId, ItemId, int]]:
        """First id, second id and distance of each pair."""
        return zip(self.first.tolist(), self.second.tolist(), self.distances.tolist(), strict=True)


def near_items(one: Snapshot, other: Snapshot | None, code_length: int, radius: int) -> Iterator[NearPairs]:
    """Near pairs within an index, or of one of its items with one of another's."""
    rows = one.rows()
    codes, split, others, rows_of_others = codes_at(one, rows), 0, one, rows
    if other is not None:
        split, others, rows_of_others = len(rows), other, other.rows()
        codes = np.concatenate([codes, codes_at(other, rows_of_others)])
        if not split:
            return
    for pairs in near_rows(codes, code_length, radius, split):
        first, second, distances = pairs.T
        ids = others.ids_of(rows_of_others[second - split])
        yield NearPairs(one.ids_of(rows[first]), ids, distances.astype(np.int32))


def codes_at(snapshot: Snapshot, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Codes of many rows, uint64 (rows, words), with working memory for some of them."""
    codes = np.empty((len(rows), snapshot.words), dtype=np.uint64)
    for start in range(0, len(rows), PAIRED_AT_ONCE):
        codes[start : start + PAIRED_AT_ONCE] = snapshot.words_of(rows[start : start + PAIRED_AT_ONCE])
    return codes


class _Tables(NamedTuple):
    # Bits of all parts, uint64 (parts, words), and in how many of them rows of a run agree.
    masks: NDArray[np.uint64]
    equal: int


def near_rows(codes: NDArray[np.uint64], code_length: int, radius: int, split: int = 0) -> Iterator[NDArray[np.int64]]:
    """Find all pairs of rows at most `radius` bits apart, exactly, on all threads.

    Args:
        codes: uint64 (rows, words), contiguous, as `deephash_pipeline.retrieval.code_words` gives them.
        code_length: bits per code, 1..4,096.
        radius: the largest distance that counts, at least 0.
        split: number of rows: only pairs of one of the first `split` rows and one of the others; 0 for all.

    Yields:
        int64 (pairs, 3): the lower row, the higher row, the distance, in the order of rows. The memory that is used
        does not grow with the number of pairs.

    Example:
        >>> codes = np.array([[0], [255], [1]], dtype=np.uint64)
        >>> [pairs.tolist() for pairs in near_rows(codes, code_length=8, radius=1)]
        [[[0, 2, 1]]]
    """
    if not len(codes):
        return
    first, stop, last = 0, len(codes), split or len(codes)
    radius = min(radius, code_length)
    tables = _cheapest(codes, code_length, radius)
    row_bits = max(1, (len(codes) - 1).bit_length())
    while first < last:
        stop = min(last, stop, first + (1 << (WORD_BITS - DISTANCE_BITS - row_bits)))
        stop, keys = _Search(codes, tables, radius, split, row_bits).below(first, stop)
        for start in range(0, len(keys), PAIRS_IN_BLOCK):
            some = keys[start : start + PAIRS_IN_BLOCK]
            second = (some >> np.uint64(DISTANCE_BITS)) & np.uint64((1 << row_bits) - 1)
            rows = first + (some >> np.uint64(DISTANCE_BITS + row_bits)).astype(np.int64)
            distances = some & np.uint64((1 << DISTANCE_BITS) - 1)
            yield np.stack([rows, second.astype(np.int64), distances.astype(np.int64)], axis=1)
        # As many rows as would have filled the memory.
        first, stop = stop, stop + math.ceil((stop - first) * PAIRS_AT_ONCE / max(1, len(keys)))


def connected(pairs: Iterator[NDArray[np.int64]], rows: int) -> list[NDArray[np.int64]]:
    """Groups of rows that pairs connect, of two or more, each ascending, in the order of their first rows.

    Example:
        >>> connected(iter([np.array([[0, 2, 1], [2, 3, 1]])]), rows=5)
        [array([0, 2, 3])]
    """
    try:
        # Only what asks for groups imports it.
        from scipy.sparse import coo_matrix  # noqa: PLC0415
        from scipy.sparse.csgraph import connected_components  # noqa: PLC0415
    except ImportError as error:
        raise InputError(f"groups of pairs need SciPy ({error}): {installing('scipy')}") from error

    labels = np.arange(rows)
    for some in pairs:
        ends = labels[some[:, 0]], labels[some[:, 1]]
        graph = coo_matrix((np.ones(len(some), dtype=np.bool_), ends), shape=(rows, rows))
        labels = connected_components(graph, directed=False)[1][labels]
    order = np.argsort(labels, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    return sorted((group for group in groups if len(group) > 1), key=lambda group: int(group[0]))


def _masks(code_length: int, parts: int) -> NDArray[np.uint64]:
    """Bits of the parts of a code, drawn, since neighbouring bits may be alike: uint64 (parts, words)."""
    part_of = np.random.default_rng(0).permutation(code_length) % max(1, parts)
    return code_words(np.packbits(part_of == np.arange(parts)[:, None], axis=1))


def _joined(masks: NDArray[np.uint64], chosen: tuple[int, ...]) -> NDArray[np.uint64]:
    return np.bitwise_or.reduce(masks[list(chosen)], axis=0) if chosen else np.zeros_like(masks[0])


def _prefix(words: int, radius: int) -> int:
    """So many words of two codes that are not alike differ in more bits than the radius, nearly always."""
    return min(words, 2 + radius // 16)


def _cheapest(codes: NDArray[np.uint64], code_length: int, radius: int) -> _Tables:
    """Choose in how many parts codes are cut by the pairs that runs of a sample have."""
    rows, words = codes.shape
    compared = 0.25 + COMPARED_WORD * _prefix(words, radius)
    scan = rows * rows / 2 * COMPARED_WORD * _prefix(words, radius)
    best, cheapest = _Tables(_masks(code_length, 1), 0), scan
    sample = codes
    if rows > SAMPLED_ROWS:
        drawn = np.random.default_rng(0).choice(rows, SAMPLED_ROWS, replace=False)
        sample = codes[np.sort(drawn)]
    hashes = np.empty(len(sample), dtype=np.uint32)
    for equal in range(1, code_length - radius + 1):
        tables = math.comb(radius + equal, equal)
        sorting = tables * rows * (SORTED_ROW + HASHED_WORD * words)
        if sorting > cheapest or tables > MOST_TABLES:
            break
        masks = _masks(code_length, radius + equal)
        choices = list(islice(combinations(range(radius + equal), equal), 0, None, -(-tables // SAMPLED_CHOICES)))
        pairs = 0
        for chosen in choices:
            hash_rows(sample, _joined(masks, chosen), 32, hashes)
            runs = np.unique(hashes, return_counts=True)[1].astype(np.int64)
            pairs += int((runs * (runs - 1) // 2).sum())
        expected = pairs / len(choices) * tables * (rows / len(sample)) ** 2
        if (cost := sorting + expected * compared) < cheapest:
            best, cheapest = _Tables(masks, equal), cost
    return best


class _Search:
    """Pairs of some first rows, in as many threads as there are; what does not fit into memory is left for later."""

    def __init__(self, codes: NDArray[np.uint64], tables: _Tables, radius: int, split: int, row_bits: int) -> None:
        self.codes, self.tables, self.radius, self.split, self.row_bits = codes, tables, radius, split, row_bits
        self.shift = np.uint64(row_bits + DISTANCE_BITS)
        self.threads = threads_to_use()

    def below(self, first: int, stop: int) -> tuple[int, NDArray[np.uint64]]:
        """Keys of pairs whose lower row is in first..end, in order, and end: `stop`, or less if they are too many."""
        limit = np.array([stop])
        choices = list(combinations(range(len(self.tables.masks)), self.tables.equal))
        shares = max(1, SHARES_PER_THREAD * self.threads // len(choices)) if self.threads > 1 else 1
        tasks = iter([(chosen, share, shares) for chosen in choices for share in range(shares)])
        found: list[NDArray[np.uint64]] = []
        in_threads(lambda *_: found.append(self._work(tasks, first, limit)), self.threads)
        keys = np.concatenate([part[: self._fitting(part, first, limit)] for part in map(_sorted, found)])
        return int(limit[0]), _sorted(keys)

    def _work(
        self, tasks: Iterator[tuple[tuple[int, ...], int, int]], first: int, limit: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        rows, words = len(self.codes) - first, self.codes.shape[1]
        bits = min(32, rows.bit_length() + SPARE_BITS)
        slice_bits = (min(rows // SLICE_ROWS, MOST_SLICES) or 1).bit_length() - 1
        starts = np.zeros((1 << slice_bits) + 1, dtype=np.int64)
        hashes, entries = np.empty(rows, dtype=np.uint32), np.empty(rows, dtype=np.uint64)
        prefix = np.empty((rows, _prefix(words, self.radius)), dtype=np.uint64)
        found = np.empty(max(LEAST_ROOM, PAIRS_AT_ONCE // self.threads), dtype=np.uint64)
        counts = np.zeros(2, dtype=np.int64)
        for chosen, share, shares in tasks:
            at, stop = np.zeros(2, dtype=np.int64), rows
            if chosen:
                hash_rows(self.codes[first:], _joined(self.tables.masks, chosen), bits, hashes)
                fill_table(self.codes, hashes, first, bits, share, shares, starts, entries, prefix)
            else:
                starts, slice_bits = np.array([0, rows]), bits
                entries[:], prefix[:] = np.arange(first, len(self.codes)), self.codes[first:, : prefix.shape[1]]
                # In a scan of all the later rows have fewer others after them: shares are of equal pairs.
                at[1], stop = (round(rows * (1 - math.sqrt(1 - part / shares))) for part in (share, share + 1))
            parts = np.array(chosen, dtype=np.int64)
            while not pairs_in_table(
                self.codes, self.tables.masks, parts, starts, entries, prefix, at, stop, bits - slice_bits, self.split,
                first, limit, self.radius, self.row_bits, found, counts,
            ):  # fmt: skip
                found = self._with_room(found, counts, first, limit)
        return found[: counts[0]]

    def _with_room(
        self, found: NDArray[np.uint64], counts: NDArray[np.int64], first: int, limit: NDArray[np.int64]
    ) -> NDArray[np.uint64]:
        """Lower the limit to where half of the pairs are, and forget the others; more room if all are of one row."""
        keys = _sorted(found[: counts[1]].copy())
        middle = first + int(keys[len(keys) // 2] >> self.shift)
        limit[0] = min(int(limit[0]), max(middle, first + 1))
        # The last pairs will be found again.
        counts[0] = self._fitting(_sorted(found[: counts[0]]), first, limit)
        return np.resize(found, 2 * len(found)) if limit[0] == first + 1 else found

    def _fitting(self, keys: NDArray[np.uint64], first: int, limit: NDArray[np.int64]) -> int:
        """How many of sorted keys are below the limit."""
        return int(np.searchsorted(keys, np.uint64(int(limit[0]) - first) << self.shift))


def _sorted(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    keys.sort()
    return keys
