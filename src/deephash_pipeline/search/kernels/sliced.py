"""Which of 4,096 codes are near enough to a query, 64 of them (512 in a vector register) at a time.

The codes of a block are turned on their side: a *plane* is a row of words with one bit of every code. Bits come in
threes, and in how many of three bits a code differs from a query is a number of two binary digits that is tabulated
for the eight triples a query can have. Full adders add the numbers of 24 triples at a time (of 8, where fewer are left)
to the binary digits of the distances so far, and a chain of borrows compares those with the limit. A distance is
written down only where it is near enough.

Turning and tabulating a block costs about as much as ten queries do, so a batch makes the tables anew, in the
second-level cache, and an index needs no memory beyond its codes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.kernels.compiled import inner, popcount

WORD_CODES = 64
BLOCK_WORDS = 64
BLOCK_CODES = BLOCK_WORDS * WORD_CODES
FEW_TRIPLES, MANY_TRIPLES = 8, 24
"""Triples that are added at a time."""
FEWEST_DIGITS = 7
"""Binary digits of the number that 24 triples add up to."""
TRIPLE_WORDS = 8 * 2 * BLOCK_WORDS
"""Of a triple in a table: eight values, two digits."""
CACHE_LINE_WORDS = 8
CODE, DISTANCE = 0, 1
"""Columns of a list of near codes."""

NONE = np.uint64(0)
ONE = np.uint64(1)
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
# Bits whose place has a zero in binary digit 5, 4, .. 0.
_LOW_HALVES = tuple(
    (width, np.uint64(sum(1 << place for place in range(64) if not place & width))) for width in (32, 16, 8, 4, 2, 1)
)
_WIDTHS = np.array([width for width, _ in _LOW_HALVES], dtype=np.uint64)
_MASKS = np.array([mask for _, mask in _LOW_HALVES], dtype=np.uint64)
_ROW = np.uint64(BLOCK_WORDS)


@inner
def full_add(a: Any, b: Any, c: Any) -> Any:
    """Add three binary digits, of 64 numbers at a time: the digit of the sums, and the carries."""
    either = a ^ b
    return either ^ c, (a & b) | (either & c)


@inner
def aligned(size: int) -> NDArray[np.uint64]:
    """Memory for numbers: a vector that crosses the border of a cache line would take twice as long to load."""
    memory = np.zeros(size + CACHE_LINE_WORDS, dtype=np.uint64)
    first = (-memory.ctypes.data // 8) % CACHE_LINE_WORDS
    return memory[first : first + size]


@inner
def triples_of(code_length: int) -> int:
    """How many triples a code takes, up to the next whole addition."""
    return (code_length + 3 * FEW_TRIPLES - 1) // (3 * FEW_TRIPLES) * FEW_TRIPLES


@inner
def digits_of(code_length: int) -> int:
    """How many binary digits of a distance are kept."""
    digits = FEWEST_DIGITS
    while code_length >> digits:
        digits += 1
    return digits


@inner
def table_entries(queries: NDArray[np.uint64], triples: int) -> NDArray[np.uint64]:
    """Where the numbers for queries (n, words) stand in the table that has each triple: uint64 (n x triples,)."""
    entries = np.empty(len(queries) * triples, dtype=np.uint64)
    in_many = triples // MANY_TRIPLES * MANY_TRIPLES
    for query in range(len(queries)):
        for triple in range(triples):
            value = 0
            for place in range(3):
                bit = 3 * triple + place
                if bit < 64 * queries.shape[1] and (queries[query, bit >> 6] >> np.uint64(bit & 63)) & ONE:
                    value |= 1 << place
            row = triple % MANY_TRIPLES if triple < in_many else triple - in_many
            entries[query * triples + triple] = (2 * BLOCK_WORDS) * (8 * row + value)
    return entries


@inner
def turn(words: Any, first: int, stop: int, planes: Any) -> None:
    """Turn codes first..stop of words (words, codes) on their side: bit i of planes[b, g] is bit b of code 64 g + i."""
    for word in range(words.shape[0]):
        row = words[word]
        top = WORD_CODES * word
        for code in range(stop - first):
            planes[top + code % WORD_CODES, code // WORD_CODES] = row[first + code]
        # A matrix is transposed by swapping two of its quarters, then two quarters of each quarter, and so on.
        for step in range(len(_WIDTHS)):
            width, mask = _WIDTHS[step], _MASKS[step]
            for low in range(WORD_CODES):
                if low & int(width):
                    continue
                upper, lower = planes[top + low], planes[top + low + int(width)]
                for place in range(BLOCK_WORDS):
                    swapped = ((upper[place] >> width) ^ lower[place]) & mask
                    lower[place] ^= swapped
                    upper[place] ^= swapped << width


@inner
def tabulate(planes: Any, first: int, triples: int, table: Any) -> None:
    """Fill a table with so many triples of planes, from triple `first` on."""
    for triple in range(triples):
        bit = 3 * (first + triple)
        plane0, plane1, plane2 = planes[bit], planes[bit + 1], planes[bit + 2]
        for value in range(8):
            flip0 = ALL if value & 1 else NONE
            flip1 = ALL if value & 2 else NONE
            flip2 = ALL if value & 4 else NONE
            start = (8 * triple + value) * 2 * BLOCK_WORDS
            ones, twos = table[start : start + BLOCK_WORDS], table[start + BLOCK_WORDS : start + 2 * BLOCK_WORDS]
            for place in range(BLOCK_WORDS):
                ones[place], twos[place] = full_add(plane0[place] ^ flip0, plane1[place] ^ flip1, plane2[place] ^ flip2)


@inner
def _half_add(a: Any, b: Any) -> Any:
    return a ^ b, a & b


@inner
def _add_eight(
    t: Any, e0: Any, e1: Any, e2: Any, e3: Any, e4: Any, e5: Any, e6: Any, e7: Any, ones: Any, a0: Any, a1: Any, a2: Any
) -> Any:
    """Add the numbers of eight triples in a table to binary digits a0, a1, a2: those digits, and three carries."""
    s0, c0 = full_add(t[e0 + ones], t[e1 + ones], t[e2 + ones])
    s1, c1 = full_add(t[e3 + ones], t[e4 + ones], t[e5 + ones])
    s2, c2 = full_add(t[e6 + ones], t[e7 + ones], a0)
    a0, c3 = full_add(s0, s1, s2)
    twos = ones + _ROW
    s0, d0 = full_add(t[e0 + twos], t[e1 + twos], t[e2 + twos])
    s1, d1 = full_add(t[e3 + twos], t[e4 + twos], t[e5 + twos])
    s2, d2 = full_add(t[e6 + twos], t[e7 + twos], c0)
    s3, d3 = full_add(c1, c2, c3)
    s0, d4 = full_add(s0, s1, s2)
    a1, d5 = full_add(s0, s3, a1)
    s0, c0 = full_add(d0, d1, d2)
    s1, c1 = full_add(d3, d4, d5)
    a2, c2 = full_add(s0, s1, a2)
    return a0, a1, a2, c0, c1, c2


@inner
def add_many(t: Any, entries: Any, at: Any, sums: Any, start: Any, digits: int) -> None:
    """Add the numbers of 24 triples to the distances of a block.

    Args:
        t: table with these triples.
        entries: of `table_entries`; those of the triples begin
        at: here, uint64.
        sums: binary digits of distances, rows of BLOCK_WORDS words, the lowest first; those of the query begin
        start: here, uint64, after a row of working memory.
        digits: how many the sums have by now.
    """
    e0, e1, e2, e3 = entries[at], entries[at + np.uint64(1)], entries[at + np.uint64(2)], entries[at + np.uint64(3)]
    at += np.uint64(4)
    e4, e5, e6, e7 = entries[at], entries[at + np.uint64(1)], entries[at + np.uint64(2)], entries[at + np.uint64(3)]
    at += np.uint64(4)
    f0, f1, f2, f3 = entries[at], entries[at + np.uint64(1)], entries[at + np.uint64(2)], entries[at + np.uint64(3)]
    at += np.uint64(4)
    f4, f5, f6, f7 = entries[at], entries[at + np.uint64(1)], entries[at + np.uint64(2)], entries[at + np.uint64(3)]
    at += np.uint64(4)
    g0, g1, g2, g3 = entries[at], entries[at + np.uint64(1)], entries[at + np.uint64(2)], entries[at + np.uint64(3)]
    at += np.uint64(4)
    g4, g5, g6, g7 = entries[at], entries[at + np.uint64(1)], entries[at + np.uint64(2)], entries[at + np.uint64(3)]
    for place in range(BLOCK_WORDS):
        word = np.uint64(place)
        d0 = start + word
        d1, d2, d3, d4 = d0 + _ROW, d0 + np.uint64(2) * _ROW, d0 + np.uint64(3) * _ROW, d0 + np.uint64(4) * _ROW
        d5, d6 = d0 + np.uint64(5) * _ROW, d0 + np.uint64(6) * _ROW
        a0, a1, a2, x0, x1, x2 = _add_eight(t, e0, e1, e2, e3, e4, e5, e6, e7, word, sums[d0], sums[d1], sums[d2])
        a0, a1, a2, y0, y1, y2 = _add_eight(t, f0, f1, f2, f3, f4, f5, f6, f7, word, a0, a1, a2)
        sums[d0], sums[d1], sums[d2], z0, z1, z2 = _add_eight(t, g0, g1, g2, g3, g4, g5, g6, g7, word, a0, a1, a2)
        # Worth 8: nine carries and one from before; 16: five and one; 32: three and one; 64: two and one.
        s0, c0 = full_add(x0, x1, x2)
        s1, c1 = full_add(y0, y1, y2)
        s2, c2 = full_add(z0, z1, z2)
        s0, c3 = full_add(s0, s1, s2)
        sums[d3], c4 = _half_add(s0, sums[d3])
        s0, x0 = full_add(c0, c1, c2)
        s1, x1 = full_add(c3, c4, sums[d4])
        sums[d4], x2 = _half_add(s0, s1)
        s0, c0 = full_add(x0, x1, x2)
        sums[d5], c1 = _half_add(s0, sums[d5])
        sums[d6], sums[d0 - _ROW] = full_add(c0, c1, sums[d6])
    _carry_on(sums, start, np.int64(FEWEST_DIGITS), digits)


@inner
def add_few(t: Any, entries: Any, at: Any, sums: Any, start: Any, digits: int) -> None:
    """Add the numbers of 8 triples to the distances of a block, see `add_many`."""
    e0, e1, e2, e3 = entries[at], entries[at + np.uint64(1)], entries[at + np.uint64(2)], entries[at + np.uint64(3)]
    at += np.uint64(4)
    e4, e5, e6, e7 = entries[at], entries[at + np.uint64(1)], entries[at + np.uint64(2)], entries[at + np.uint64(3)]
    for place in range(BLOCK_WORDS):
        word = np.uint64(place)
        d0 = start + word
        d1, d2, d3, d4 = d0 + _ROW, d0 + np.uint64(2) * _ROW, d0 + np.uint64(3) * _ROW, d0 + np.uint64(4) * _ROW
        sums[d0], sums[d1], sums[d2], x0, x1, x2 = _add_eight(
            t, e0, e1, e2, e3, e4, e5, e6, e7, word, sums[d0], sums[d1], sums[d2]
        )
        s0, c0 = full_add(x0, x1, x2)
        sums[d3], c1 = _half_add(s0, sums[d3])
        sums[d4], sums[d0 - _ROW] = full_add(c0, c1, sums[d4])
    _carry_on(sums, start, np.int64(5), digits)


@inner
def _carry_on(sums: Any, start: Any, digit: int, digits: int) -> None:
    """Add the carries, which stand before the digits, to those from `digit` on."""
    carries = start - _ROW
    for higher in range(digit, digits):
        row = start + np.uint64(higher) * _ROW
        for place in range(BLOCK_WORDS):
            word = np.uint64(place)
            sums[row + word], sums[carries + word] = _half_add(sums[row + word], sums[carries + word])


@inner
def list_marked(
    sums: Any, start: Any, digits: int, marks: Any, limit: int, first: int, begin: int, stop: int, near: Any
) -> int:
    """List those of codes begin..stop of the block from `first` on whose distance is at most `limit`.

    Args:
        sums: see `add_many`,
        start: likewise,
        digits: likewise.
        marks: uint64 (BLOCK_WORDS,), working memory.
        limit: the largest distance that counts.
        first: the first code of the block.
        begin: the first code to list,
        stop: and the one after the last.
        near: int64 (BLOCK_CODES, 2), written: codes and distances.

    Returns:
        How many there are.
    """
    for place in range(BLOCK_WORDS):
        marks[place] = NONE
    for digit in range(digits):
        # Whether numbers exceed the limit from this digit down, given whether they do from the digit below.
        row, of_limit = start + np.uint64(digit) * _ROW, ALL if limit >> digit & 1 else NONE
        for place in range(BLOCK_WORDS):
            word = np.uint64(place)
            digit_of, lower = sums[row + word], marks[word]
            marks[word] = (digit_of & ~of_limit) | (lower & (digit_of | ~of_limit))
    found = NONE
    for place in range(BLOCK_WORDS):
        found |= ~marks[place]
    if found == NONE:
        return 0
    listed = 0
    for place in range((begin - first) // WORD_CODES, (stop - first + WORD_CODES - 1) // WORD_CODES):
        word = np.uint64(place)
        marked = ~marks[word]
        while marked != NONE:
            lowest = marked & (~marked + ONE)
            bit = popcount(lowest - ONE)
            marked ^= lowest
            code = first + WORD_CODES * place + np.int64(bit)
            if begin <= code < stop:
                distance = NONE
                for digit in range(digits):
                    distance |= ((sums[start + np.uint64(digit) * _ROW + word] >> bit) & ONE) << np.uint64(digit)
                near[listed, CODE], near[listed, DISTANCE] = code, np.int64(distance)
                listed += 1
    return listed
