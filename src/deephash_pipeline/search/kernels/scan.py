"""How far codes are from a query, by popcounts, a chunk of codes at a time.

Words of equal place lie side by side, so that a vector holds a word of several codes. Of eight words, carry-save adders
(Harley and Seal) make four whose ones count 1, 1, 2 and 4: half the popcounts, which cost most on processors without an
instruction for vectors of them. The words of a chunk are read in long runs, as fast as the memory gives them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.kernels.compiled import inner, popcount
from deephash_pipeline.search.kernels.sliced import CODE, DISTANCE, NONE, ONE, WORD_CODES

# Codes of one to seven words, and of more.
CHUNK_CODES, LONG_CHUNK_CODES = 512, 2048
WIDE_WORDS = 8


@inner
def chunk_of(words: int) -> int:
    """How many codes of so many words make a chunk."""
    return CHUNK_CODES if words < WIDE_WORDS else LONG_CHUNK_CODES


@inner
def scan_chunk(
    words: NDArray[np.uint64],
    first: int,
    stop: int,
    queries: NDArray[np.uint64],
    query: int,
    limit: int,
    distances: NDArray[np.uint64],
    near: NDArray[np.int64],
) -> int:
    """List those of codes first..stop whose distance from a query is at most `limit`.

    Args:
        words: codes, uint64 (words, codes).
        first: the first code,
        stop: and the one after the last; at most LONG_CHUNK_CODES in all.
        queries: codes, uint64 (queries, words).
        query: which of them.
        limit: the largest distance that counts.
        distances: uint64 (LONG_CHUNK_CODES,), working memory.
        near: int64 (LONG_CHUNK_CODES, 2), written: codes and distances.

    Returns:
        How many there are.
    """
    size, start, row = np.uint64(stop - first), np.uint64(first), np.uint64(query)
    word: Any = np.int64(0)
    length = queries.shape[1]
    farthest, least = np.uint64(limit), ~NONE
    if length == 1:
        bits = queries[row, NONE]
        for place in range(size):
            distance = popcount(words[NONE, start + place] ^ bits)
            distances[place] = distance
            least = min(least, distance)
    else:
        if length < WIDE_WORDS:
            _set_two_words(words, start, size, queries, row, distances)
            word = 2
        else:
            for place in range(size):
                distances[place] = NONE
        while word < length:
            if word + 8 <= length:
                _add_eight_words(words, np.uint64(word), start, size, queries, row, distances)
                word += 8
            else:
                _add_word(words, np.uint64(word), start, size, queries, row, distances)
                word += 1
        for place in range(size):
            least = min(least, distances[place])
    return _list_near(distances, first, stop - first, farthest, near) if least <= farthest else 0


@inner
def _add_word(words: Any, word: Any, start: Any, size: Any, queries: Any, query: Any, distances: Any) -> None:
    bits = queries[query, word]
    for place in range(size):
        distances[place] += popcount(words[word, start + place] ^ bits)


@inner
def _set_two_words(words: Any, start: Any, size: Any, queries: Any, query: Any, distances: Any) -> None:
    bits0, bits1 = queries[query, NONE], queries[query, ONE]
    for place in range(size):
        code = start + place
        distances[place] = popcount(words[NONE, code] ^ bits0) + popcount(words[ONE, code] ^ bits1)


@inner
def _full_add(a: Any, b: Any, c: Any) -> Any:
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@inner
def _add_eight_words(words: Any, word: Any, start: Any, size: Any, queries: Any, query: Any, distances: Any) -> None:
    w0, w1, w2, w3 = word, word + np.uint64(1), word + np.uint64(2), word + np.uint64(3)
    w4, w5, w6, w7 = word + np.uint64(4), word + np.uint64(5), word + np.uint64(6), word + np.uint64(7)
    b0, b1, b2, b3 = queries[query, w0], queries[query, w1], queries[query, w2], queries[query, w3]
    b4, b5, b6, b7 = queries[query, w4], queries[query, w5], queries[query, w6], queries[query, w7]
    for place in range(size):
        code = start + place
        ones, twos0 = _full_add(words[w0, code] ^ b0, words[w1, code] ^ b1, words[w2, code] ^ b2)
        more, twos1 = _full_add(words[w3, code] ^ b3, words[w4, code] ^ b4, words[w5, code] ^ b5)
        ones, twos2 = _full_add(ones, more, words[w6, code] ^ b6)
        twos, fours = _full_add(twos0, twos1, twos2)
        distances[place] += (
            popcount(ones)
            + popcount(words[w7, code] ^ b7)
            + (popcount(twos) << np.uint64(1))
            + (popcount(fours) << np.uint64(2))
        )


@inner
def _list_near(distances: Any, chunk: int, size: int, farthest: Any, near: Any) -> Any:
    """List those codes of a chunk that are near enough, with their distances; return how many there are."""
    listed: Any = np.int64(0)
    for first in range(0, size, WORD_CODES):
        start, of_word = np.uint64(first), np.uint64(min(WORD_CODES, size - first))
        # Mostly one code of a chunk is near: the least of 64 distances is found faster than 64 marks are made.
        least = farthest + ONE
        for place in range(of_word):
            least = min(least, distances[start + place])
        if least > farthest:
            continue
        marked = NONE
        for place in range(of_word):
            marked |= np.uint64(distances[start + place] <= farthest) << place
        while marked != NONE:
            lowest = marked & (~marked + ONE)
            code = first + np.int64(popcount(lowest - ONE))
            near[listed, CODE], near[listed, DISTANCE] = chunk + code, np.int64(distances[code])
            listed += 1
            marked ^= lowest
    return listed
