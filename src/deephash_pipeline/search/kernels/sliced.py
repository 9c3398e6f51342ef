"""Which of 8,192 codes are near enough to a query, 64 of them (512 in a vector register) at a time.

The codes of a block are turned on their side: a *plane* is a row of words with one bit of every code. Bits come in
threes, and in how many of three bits a code differs from a query is a number of two binary digits that is tabulated
for the eight triples a query can have. Full adders sum the numbers of all triples to the binary digits of the
distances, and a chain of borrows compares those with the limit. No distance is ever written down.

Unlike the tables that evaluation counts with, these are not stored: turning and tabulating a block costs about as much
as a few dozen queries do, so a batch makes them anew, in the second-level cache, and an index needs no memory beyond
its codes.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

# All that the compiled functions are made of stands in this file, because numba takes one from its cache as long as
# its own file is unchanged.
WORD_CODES = 64
BLOCK_WORDS = 128
BLOCK_CODES = BLOCK_WORDS * WORD_CODES
TRIPLES_PER_SUM = 8
BITS_PER_SUM = 3 * TRIPLES_PER_SUM
LONGEST_SLICED_CODE = 64
CACHE_LINE_WORDS = 8

NONE = np.uint64(0)
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
# Bits whose place has a zero in binary digit 5, 4, .. 0.
_LOW_HALVES = tuple(
    (width, np.uint64(sum(1 << place for place in range(64) if not place & width))) for width in (32, 16, 8, 4, 2, 1)
)
_WIDTHS = np.array([width for width, _ in _LOW_HALVES], dtype=np.uint64)
_MASKS = np.array([mask for _, mask in _LOW_HALVES], dtype=np.uint64)
_TWOS = np.uint64(BLOCK_WORDS)


@njit(cache=True, nogil=True)
def sums_of(code_length: int) -> int:
    """How many sums of eight triples a code of up to 64 bits takes: 1, 2 or 3."""
    return (code_length + BITS_PER_SUM - 1) // BITS_PER_SUM


@njit(cache=True, nogil=True)
def new_table(code_length: int) -> NDArray[np.uint64]:
    """Memory for the table of a block: uint64 (sums x 8 triples x 8 values x 2 digits x BLOCK_WORDS,)."""
    size = sums_of(code_length) * TRIPLES_PER_SUM * 8 * 2 * BLOCK_WORDS
    memory = np.empty(size + CACHE_LINE_WORDS, dtype=np.uint64)
    # A vector that crosses the border of a cache line takes twice as long to load.
    first = (-memory.ctypes.data // 8) % CACHE_LINE_WORDS
    return memory[first : first + size]


@njit(cache=True, nogil=True)
def table_entries(words: NDArray[np.uint64], code_length: int) -> NDArray[np.uint64]:
    """Where in a block's table the numbers for each query stand: uint64 (queries, triples), of words (queries,)."""
    triples = sums_of(code_length) * TRIPLES_PER_SUM
    entries = np.empty((len(words), triples), dtype=np.uint64)
    for query in range(len(words)):
        for triple in range(triples):
            # From bit 64 on there is nothing, and a shift by 64 or more is undefined.
            value = (words[query] >> np.uint64(3 * triple)) & np.uint64(7) if 3 * triple < 64 else NONE
            entries[query, triple] = (np.uint64(8 * triple) + value) * np.uint64(2 * BLOCK_WORDS)
    return entries


@njit(cache=True, nogil=True)
def tabulate(words: NDArray[np.uint64], first: int, stop: int, code_length: int, table: NDArray[np.uint64]) -> None:
    """Fill a block's table from words[first:stop], at most BLOCK_CODES codes; the rest of the block counts as zeros."""
    planes = _planes(words, first, stop)
    absent = np.zeros(BLOCK_WORDS, dtype=np.uint64)
    for triple in range(sums_of(code_length) * TRIPLES_PER_SUM):
        plane0 = planes[3 * triple] if 3 * triple < 64 else absent
        plane1 = planes[3 * triple + 1] if 3 * triple + 1 < 64 else absent
        plane2 = planes[3 * triple + 2] if 3 * triple + 2 < 64 else absent
        for value in range(8):
            flip0 = ALL if value & 1 else NONE
            flip1 = ALL if value & 2 else NONE
            flip2 = ALL if value & 4 else NONE
            start = (8 * triple + value) * 2 * BLOCK_WORDS
            ones, twos = table[start : start + BLOCK_WORDS], table[start + BLOCK_WORDS : start + 2 * BLOCK_WORDS]
            for word in range(BLOCK_WORDS):
                ones[word], twos[word] = _full_add(plane0[word] ^ flip0, plane1[word] ^ flip1, plane2[word] ^ flip2)


@njit(cache=True, nogil=True)
def _planes(words: Any, first: int, stop: int) -> Any:
    """Turn codes on their side: bit `i` of planes[b, g] is bit `b` of code 64 g + i."""
    planes = np.zeros((WORD_CODES, BLOCK_WORDS), dtype=np.uint64)
    for code in range(stop - first):
        planes[code % WORD_CODES, code // WORD_CODES] = words[first + code]
    # A matrix is transposed by swapping two of its quarters, then two quarters of each quarter, and so on.
    for step in range(len(_WIDTHS)):
        width, mask = _WIDTHS[step], _MASKS[step]
        for row in range(WORD_CODES):
            if row & int(width):
                continue
            upper, lower = planes[row], planes[row + int(width)]
            for word in range(BLOCK_WORDS):
                swapped = ((upper[word] >> width) ^ lower[word]) & mask
                lower[word] ^= swapped
                upper[word] ^= swapped << width
    return planes


@njit(cache=True, nogil=True)
def _full_add(a: Any, b: Any, c: Any) -> Any:
    return a ^ b ^ c, (a & b) | (c & (a | b))


@njit(cache=True, nogil=True)
def _half_add(a: Any, b: Any) -> Any:
    return a ^ b, a & b


@njit(cache=True, nogil=True)
def _sum_of_eight(table: Any, e0: Any, e1: Any, e2: Any, e3: Any, e4: Any, e5: Any, e6: Any, e7: Any, ones: Any) -> Any:
    """Add the numbers of eight triples, 24 at the most: five binary digits, the lowest first."""
    s0, c0 = _full_add(table[e0 + ones], table[e1 + ones], table[e2 + ones])
    s1, c1 = _full_add(table[e3 + ones], table[e4 + ones], table[e5 + ones])
    s2, c2 = _full_add(table[e6 + ones], table[e7 + ones], s0)
    digit0, c3 = _half_add(s1, s2)
    twos = ones + _TWOS
    s0, d0 = _full_add(table[e0 + twos], table[e1 + twos], table[e2 + twos])
    s1, d1 = _full_add(table[e3 + twos], table[e4 + twos], table[e5 + twos])
    s2, d2 = _full_add(table[e6 + twos], table[e7 + twos], c0)
    s3, d3 = _full_add(c1, c2, c3)
    s0, d4 = _full_add(s0, s1, s2)
    digit1, d5 = _half_add(s0, s3)
    s0, c0 = _full_add(d0, d1, d2)
    s1, c1 = _full_add(d3, d4, d5)
    digit2, c2 = _half_add(s0, s1)
    digit3, digit4 = _full_add(c0, c1, c2)
    return digit0, digit1, digit2, digit3, digit4


@njit(cache=True, nogil=True)
def _exceeds(digit: Any, of_limit: Any, lower: Any) -> Any:
    """Whether numbers exceed the limit from this digit down, given whether they do from the digit below."""
    return (digit & ~of_limit) | (lower & (digit | ~of_limit))


@njit(cache=True, nogil=True)
def mark_near(
    table: NDArray[np.uint64], e: NDArray[np.uint64], limit: int, words: int, near: NDArray[np.uint64]
) -> bool:
    """Mark the codes of a block whose distance is at most `limit`, and return whether there is one.

    Args:
        table: of `tabulate`.
        e: of `table_entries`, those of one query: 8, 16 or 24.
        limit: 0..64.
        words: how many of the block's words to mark, at most BLOCK_WORDS.
        near: uint64 (BLOCK_WORDS,), written: bit `i` of word `g` stands for code 64 g + i.
    """
    l0, l1 = ALL if limit & 1 else NONE, ALL if limit & 2 else NONE
    l2, l3 = ALL if limit & 4 else NONE, ALL if limit & 8 else NONE
    l4, l5 = ALL if limit & 16 else NONE, ALL if limit & 32 else NONE
    l6 = ALL if limit & 64 else NONE
    found = NONE
    e0, e1, e2, e3, e4, e5, e6, e7 = e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7]
    if len(e) == TRIPLES_PER_SUM:
        for place in range(words):
            word = np.uint64(place)
            a0, a1, a2, a3, a4 = _sum_of_eight(table, e0, e1, e2, e3, e4, e5, e6, e7, word)
            far = _exceeds(a2, l2, _exceeds(a1, l1, a0 & ~l0))
            near[word] = ~_exceeds(a4, l4, _exceeds(a3, l3, far)) | l5 | l6
            found |= near[word]
        return bool(found != NONE)
    f0, f1, f2, f3, f4, f5, f6, f7 = e[8], e[9], e[10], e[11], e[12], e[13], e[14], e[15]
    if len(e) == 2 * TRIPLES_PER_SUM:
        for place in range(words):
            word = np.uint64(place)
            a0, a1, a2, a3, a4 = _sum_of_eight(table, e0, e1, e2, e3, e4, e5, e6, e7, word)
            b0, b1, b2, b3, b4 = _sum_of_eight(table, f0, f1, f2, f3, f4, f5, f6, f7, word)
            a0, carry = _half_add(a0, b0)
            a1, carry = _full_add(a1, b1, carry)
            a2, carry = _full_add(a2, b2, carry)
            a3, carry = _full_add(a3, b3, carry)
            a4, a5 = _full_add(a4, b4, carry)
            far = _exceeds(a2, l2, _exceeds(a1, l1, a0 & ~l0))
            near[word] = ~_exceeds(a5, l5, _exceeds(a4, l4, _exceeds(a3, l3, far))) | l6
            found |= near[word]
        return bool(found != NONE)
    g0, g1, g2, g3, g4, g5, g6, g7 = e[16], e[17], e[18], e[19], e[20], e[21], e[22], e[23]
    for place in range(words):
        word = np.uint64(place)
        a0, a1, a2, a3, a4 = _sum_of_eight(table, e0, e1, e2, e3, e4, e5, e6, e7, word)
        b0, b1, b2, b3, b4 = _sum_of_eight(table, f0, f1, f2, f3, f4, f5, f6, f7, word)
        c0, c1, c2, c3, c4 = _sum_of_eight(table, g0, g1, g2, g3, g4, g5, g6, g7, word)
        # Three numbers become two, digit by digit, and those are added.
        a0, d1 = _full_add(a0, b0, c0)
        a1, d2 = _full_add(a1, b1, c1)
        a2, d3 = _full_add(a2, b2, c2)
        a3, d4 = _full_add(a3, b3, c3)
        a4, d5 = _full_add(a4, b4, c4)
        a1, carry = _half_add(a1, d1)
        a2, carry = _full_add(a2, d2, carry)
        a3, carry = _full_add(a3, d3, carry)
        a4, carry = _full_add(a4, d4, carry)
        a5, a6 = _half_add(d5, carry)
        far = _exceeds(a3, l3, _exceeds(a2, l2, _exceeds(a1, l1, a0 & ~l0)))
        near[word] = ~_exceeds(a6, l6, _exceeds(a5, l5, _exceeds(a4, l4, far)))
        found |= near[word]
    return bool(found != NONE)
