"""All pairs of near codes: codes that agree in some parts come together in a sort, and only those are compared.

Two codes at most r bits apart agree in at least t of r + t parts. For each choice of t parts, the rows of codes that
agree there are a *run*. A pair is in a run of several choices, and counts in that of the lowest parts in which it
agrees. Without a part (t = 0) all rows are one run.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.machine_code import compiled
from deephash_pipeline.retrieval.kernels.compiled import popcount

# Rows of a run that are compared together, with so many others at a time, of which each asks 64 whether one is near.
TILE_ROWS = 64
CHUNK_ROWS = 512
BLOCK_ROWS = 64
DISTANCE_BITS = 13
LONGEST_DIGIT = 11
SLICE, TABLE_ENTRY = 0, 1
"""Where in a table the search is: which slice, and which of its entries."""
_FACTOR = np.uint64(0x9E37_79B9_7F4A_7C15)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFF_FFFF)
_NONE = np.uint64(0)


@compiled()
def hash_rows(codes: NDArray[np.uint64], mask: NDArray[np.uint64], bits: int, hashes: NDArray[np.uint32]) -> None:
    """Hash the bits of codes under a mask: equal ones get equal numbers.

    Args:
        codes: uint64 (rows, words).
        mask: uint64 (words,).
        bits: bits of a hash, 1..32.
        hashes: uint32 (rows,), written.
    """
    kept = np.uint64(64 - bits)
    for row in range(len(codes)):
        mixed = _NONE
        for word in range(len(mask)):
            mixed = (mixed ^ (codes[row, word] & mask[word])) * _FACTOR
            mixed ^= mixed >> _HALF
        hashes[row] = (mixed * _FACTOR) >> kept


@compiled()
def fill_table(
    codes: NDArray[np.uint64],
    hashes: NDArray[np.uint32],
    first: int,
    bits: int,
    share: int,
    shares: int,
    starts: NDArray[np.int64],
    entries: NDArray[np.uint64],
    starts_of_codes: NDArray[np.uint64],
) -> None:
    """Deal rows by the upper bits of their hashes into slices that a processor's cache has room for.

    Args:
        codes: uint64 (rows, words).
        hashes: hashes of `hash_rows`, for the rows from `first` on.
        first: the least row.
        bits: bits of a hash.
        share: number of the range of hashes that is wanted.
        shares: number of ranges that there are.
        starts: int64 (slices + 1,), written: entries[starts[s] : starts[s + 1]] are of slice s of 2^n.
        entries: uint64 (rows - first,), written: hash << 32 | row, rows ascending in a slice.
        starts_of_codes: uint64 (rows - first, prefix), written: the first words of the code of each entry.
    """
    slices = len(starts) - 1
    beyond = bits
    while (slices >> (bits - beyond)) > 1:
        beyond -= 1
    shift = np.uint32(beyond)
    starts[:] = 0
    for place in range(len(hashes)):
        if shares == 1 or (np.int64(hashes[place]) * shares) >> bits == share:
            starts[np.int64(hashes[place] >> shift) + 1] += 1
    for part in range(slices):
        starts[part + 1] += starts[part]
    places = starts[:slices].copy()
    prefix = starts_of_codes.shape[1]
    for place in range(len(hashes)):
        key = hashes[place]
        if shares == 1 or (np.int64(key) * shares) >> bits == share:
            to = places[np.int64(key >> shift)]
            places[np.int64(key >> shift)] = to + 1
            entries[to] = np.uint64(key) << _HALF | np.uint64(first + place)
            for word in range(prefix):
                starts_of_codes[to, word] = codes[first + place, word]


@compiled()
def _sort_slice(entries: Any, bits: int, order: Any, spare: Any) -> None:
    """Sort a slice: order[:len(entries)] becomes hash << 32 | place in the slice, ascending."""
    count = len(entries)
    for place in range(count):
        order[place] = (entries[place] >> _HALF) << _HALF | np.uint64(place)
    passes = (bits + LONGEST_DIGIT - 1) // LONGEST_DIGIT
    if passes == 0 or count < 2:
        return
    digit = (bits + passes - 1) // passes
    places = np.empty((1 << digit) + 1, dtype=np.int64)
    of_digit = np.uint64((1 << digit) - 1)
    for step in range(passes):
        shift = _HALF + np.uint64(step * digit)
        places[:] = 0
        for place in range(count):
            places[np.int64((order[place] >> shift) & of_digit) + 1] += 1
        for value in range(1 << digit):
            places[value + 1] += places[value]
        for place in range(count):
            digits = np.int64((order[place] >> shift) & of_digit)
            spare[places[digits]] = order[place]
            places[digits] += 1
        order[:count] = spare[:count]


@compiled()
def _ask_block(chunk: Any, at: Any, code: Any, prefix: int, distances: Any) -> Any:
    """Distances of 64 codes of a chunk in their first words, and the least of them."""
    row, bits = chunk[0], code[0]
    for place in range(np.uint64(BLOCK_ROWS)):
        distances[place] = popcount(row[at + place] ^ bits)
    for word in range(1, prefix):
        row, bits = chunk[word], code[word]
        for place in range(np.uint64(BLOCK_ROWS)):
            distances[place] += popcount(row[at + place] ^ bits)
    least = distances[0]
    for place in range(np.uint64(BLOCK_ROWS)):
        least = min(least, distances[place])
    return least


@compiled()
def _mark_near(distances: Any, farthest: Any) -> Any:
    """Bit i is set where distances[i] counts."""
    marked = _NONE
    for place in range(np.uint64(BLOCK_ROWS)):
        marked |= np.uint64(distances[place] <= farthest) << place
    return marked


@compiled()
def _counts_here(codes: Any, one: int, other: int, masks: Any, chosen: Any) -> bool:
    """Whether the chosen parts are the lowest in which two codes agree."""
    met = 0
    for part in range(chosen[len(chosen) - 1] + 1):
        differing = _NONE
        for word in range(codes.shape[1]):
            differing |= (codes[one, word] ^ codes[other, word]) & masks[part, word]
            if differing != _NONE:
                break
        if (differing == _NONE) != (chosen[met] == part):
            return False
        met += int(differing == _NONE)
    return True


@compiled()
def pairs_in_table(
    codes: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    chosen: NDArray[np.int64],
    starts: NDArray[np.int64],
    entries: NDArray[np.uint64],
    starts_of_codes: NDArray[np.uint64],
    at: NDArray[np.int64],
    stop: int,
    bits: int,
    split: int,
    first: int,
    limit: NDArray[np.int64],
    radius: int,
    row_bits: int,
    found: NDArray[np.uint64],
    counts: NDArray[np.int64],
) -> bool:
    """List near pairs whose first row is below a limit, as far as there is room; return whether these are all.

    Args:
        codes: uint64 (rows, words).
        masks: uint64 (parts, words), the bits of every part.
        chosen: int64, the parts in which rows of a run agree, ascending.
        starts: starts of `fill_table`.
        entries: entries of `fill_table`.
        starts_of_codes: starts of codes of `fill_table`.
        at: int64 (2,), where to begin; raised to where to go on.
        stop: entries of a slice that may be first of a pair.
        bits: bits of a hash that are not equal throughout a slice.
        split: the first row that may be the second of a pair, and may not be the first; 0 for any pair.
        first: the least row there is.
        limit: int64 (1,), lowered by other threads.
        radius: the largest distance that counts.
        row_bits: bits of a row in a key.
        found: uint64, written from counts[0] on: first row - `first`, second row and distance in one number.
        counts: int64 (2,), the first is raised by the number of pairs; where there is no room for those of the next
            rows, the second is where the list of some of these ends.
    """
    words, prefix = codes.shape[1], starts_of_codes.shape[1]
    parts, longest = len(chosen), np.int64(0)
    for part in range(len(starts) - 1):
        longest = max(longest, starts[part + 1] - starts[part])
    order, spare = np.empty(longest, dtype=np.uint64), np.empty(longest, dtype=np.uint64)
    rows = np.empty(longest, dtype=np.int64)
    chunk = np.zeros((prefix, CHUNK_ROWS), dtype=np.uint64)
    distances = np.empty(BLOCK_ROWS, dtype=np.uint64)
    farthest, distance_bits = np.uint64(radius), np.uint64(DISTANCE_BITS)
    shift = np.uint64(row_bits) + distance_bits
    while at[SLICE] < len(starts) - 1:
        base, size = starts[at[SLICE]], starts[at[SLICE] + 1] - starts[at[SLICE]]
        _sort_slice(entries[base : base + size], bits, order, spare)
        for place in range(size):
            rows[place] = np.int64(entries[base + np.int64(order[place] & _LOW)] & _LOW)
        last, place = min(size, stop), at[TABLE_ENTRY]
        while place < last:
            run_stop = place + 1
            while run_stop < size and order[run_stop] >> _HALF == order[place] >> _HALF:
                run_stop += 1
            before = min(limit[0], split) if split else limit[0]
            others = place
            while split and others < run_stop and rows[others] < split:
                others += 1
            until = place
            while until < min(run_stop, last) and rows[until] < before:
                until += 1
            for tile in range(place, until, TILE_ROWS):
                count = counts[0]
                for begin in range(others if split else tile + 1, run_stop, CHUNK_ROWS):
                    end = min(begin + CHUNK_ROWS, run_stop)
                    for other in range(begin, end):
                        for word in range(prefix):
                            chunk[word, other - begin] = starts_of_codes[base + np.int64(order[other] & _LOW), word]
                    for one in range(tile, min(tile + TILE_ROWS, until)):
                        of = base + np.int64(order[one] & _LOW)
                        code = starts_of_codes[of]
                        least = max(begin, one + 1)
                        for block in range((least - begin) // BLOCK_ROWS * BLOCK_ROWS, end - begin, BLOCK_ROWS):
                            if _ask_block(chunk, np.uint64(block), code, prefix, distances) > farthest:
                                continue
                            if count + BLOCK_ROWS > len(found):
                                at[TABLE_ENTRY], counts[1] = tile, count
                                return False
                            marked = _mark_near(distances, farthest)
                            if least > begin + block:
                                marked &= ~((np.uint64(1) << np.uint64(least - begin - block)) - np.uint64(1))
                            if end < begin + block + BLOCK_ROWS:
                                marked &= (np.uint64(1) << np.uint64(end - begin - block)) - np.uint64(1)
                            while marked != _NONE:
                                in_block = int(popcount((marked & (~marked + np.uint64(1))) - np.uint64(1)))
                                marked &= marked - np.uint64(1)
                                distance, other = distances[in_block], begin + block + in_block
                                if prefix < words:
                                    for word in range(prefix, words):
                                        distance += popcount(codes[rows[one], word] ^ codes[rows[other], word])
                                    if distance > farthest:
                                        continue
                                    here = _counts_here(codes, rows[one], rows[other], masks, chosen) if parts else True
                                else:
                                    to = base + np.int64(order[other] & _LOW)
                                    here = _counts_here(starts_of_codes, of, to, masks, chosen) if parts else True
                                if here:
                                    key = np.uint64(rows[one] - first) << shift
                                    found[count] = key | np.uint64(rows[other]) << distance_bits | distance
                                    count += 1
                counts[0] = count
            place = run_stop
        at[SLICE] += 1
        at[TABLE_ENTRY] = 0
    return True
