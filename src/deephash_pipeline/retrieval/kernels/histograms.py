"""The counting kernel: how many items lie at each distance, for 64 items (512 in a vector register) at a time.

For a query, a block of the bit-sliced database goes through three steps:

1. Bits come in threes. In how many of three bits an item differs from the query is a number of two binary digits, and
   there are only 8 triples a query can have: the numbers are tabulated, and no comparison is left to do.
2. Full adders sum the numbers of all triples. Then a *plane*, a row of words, holds one binary digit of all distances.
3. The items at eight distances that follow each other are an `and` of the higher digits. Where there are any, those
   that have at least the lower digits of each are another `and`, and a popcount. Inclusion and exclusion turn these
   counts into the number of items at each distance.

No distance is ever written down, and no counter is indexed by one.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.machine_code import compiled
from deephash_pipeline.retrieval.kernels.compiled import in_threads, popcount

WORD_ITEMS = 64
# A block's table takes 2 KiB per word at 48 bits: with 128 words it stays in the second-level cache.
BLOCK_WORDS = 128
BLOCK_ITEMS = BLOCK_WORDS * WORD_ITEMS
CACHE_LINE_BYTES = 64
TRIPLES_PER_ADDITION = 8
BITS_PER_ADDITION = 3 * TRIPLES_PER_ADDITION

NO_BITS = np.uint64(0)
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
VECTOR_WORDS = 8
# Rows of working memory: the binary digits of a distance, enough for 4,096 bits and more, and four more.
CARRIES, MARKED, NARROWED, EIGHT, TABLE_ROWS = 13, 14, 15, 16, 17

# Where the rows start. Indices are unsigned: those need no test for counting from the end, and so loops vectorise.
_START = tuple(np.uint64(row * BLOCK_WORDS) for row in range(TABLE_ROWS))


def difference_tables(words: NDArray[np.uint64], code_length: int) -> NDArray[np.uint64]:
    """Tabulate in how many bits of each triple the items of a database differ from each query there can be.

    Args:
        words: codes, uint64 (items, words), see `code_words`.
        code_length: bits per code, 1..4096.

    Returns:
        uint64 (blocks, triples, 8, 2, BLOCK_WORDS): for an item of a block, two binary digits of a number 0..3. The
        triples are filled up to a multiple of eight, and the items to whole blocks, by zeros.
    """
    bits = -(-code_length // 8) * 8
    triples = -(-bits // BITS_PER_ADDITION) * TRIPLES_PER_ADDITION
    shape = (-(-len(words) // BLOCK_ITEMS), triples, 8, 2, BLOCK_WORDS)
    # A vector that crosses the border of a cache line takes twice as long to load.
    memory = np.empty(8 * math.prod(shape) + CACHE_LINE_BYTES, dtype=np.uint8)
    aligned = memory[-memory.ctypes.data % CACHE_LINE_BYTES :][: 8 * math.prod(shape)]
    tables = aligned.view(np.uint64).reshape(shape)
    columns = np.ascontiguousarray(words.T)
    in_threads(lambda start, stop: _fill_tables(columns, start, stop, tables), len(tables))
    return tables


@compiled()
def full_add(a: Any, b: Any, c: Any) -> Any:
    """Add three binary digits of 64 items: digit and carry."""
    return a ^ b ^ c, (a & b) | (c & (a | b))


@compiled()
def _fill_tables(words: Any, first_block: int, stop_block: int, tables: Any) -> None:
    for block in range(first_block, stop_block):
        _fill_table(words, block * BLOCK_ITEMS, tables[block])


@compiled()
def _fill_table(words: Any, first_item: int, table: Any) -> None:
    """Fill the table (triples, 8, 2, BLOCK_WORDS) of one block from codes (words, items)."""
    items, bits = words.shape[1], WORD_ITEMS * words.shape[0]
    plane = np.empty((3, BLOCK_WORDS), dtype=np.uint64)
    for triple in range(table.shape[0]):
        for place in range(3):
            bit = 3 * triple + place
            row, shift = words[min(bit, bits - 1) // 64], np.uint64(bit % 64)
            for word in range(BLOCK_WORDS):
                first = min(first_item + word * WORD_ITEMS, items)
                codes = row[first : min(first + WORD_ITEMS, items)]
                collected = NO_BITS
                if bit < bits:
                    for item in range(len(codes)):
                        collected |= ((codes[item] >> shift) & np.uint64(1)) << np.uint64(item)
                plane[place, word] = collected
        for value in range(8):
            flip0 = ALL if value & 1 else NO_BITS
            flip1 = ALL if value & 2 else NO_BITS
            flip2 = ALL if value & 4 else NO_BITS
            ones, twos = table[triple, value, 0], table[triple, value, 1]
            for word in range(BLOCK_WORDS):
                ones[word], twos[word] = full_add(
                    plane[0, word] ^ flip0, plane[1, word] ^ flip1, plane[2, word] ^ flip2
                )


@compiled()
def counting_memory(tables: Any) -> Any:
    """Make rows of zeros that lie in the cache where the tables do not.

    A processor takes a load for one of a value just stored if the addresses agree in their last digits, and waits.
    """
    row_bytes = 8 * BLOCK_WORDS
    memory = np.zeros((TABLE_ROWS + 1) * BLOCK_WORDS, dtype=np.uint64)
    first = (tables.ctypes.data + row_bytes // 2 - memory.ctypes.data) % row_bytes // 8
    return memory[first : first + TABLE_ROWS * BLOCK_WORDS]


@compiled()
def sum_differences(table: Any, entries: Any, planes: Any) -> None:
    """Add up tabulated numbers: row `i` of planes becomes binary digit `i` of the distances of a block.

    Args:
        table: table of the block, as one row of words.
        entries: place in it, for each triple, of the number for the bits of the query.
        planes: working memory.
    """
    carries = _START[CARRIES]
    digit = 0
    while 3 * len(entries) >> digit:
        for word in range(BLOCK_WORDS):
            planes[_START[digit] + np.uint64(word)] = NO_BITS
        digit += 1
    for addition in range(len(entries) // TRIPLES_PER_ADDITION):
        e = entries[TRIPLES_PER_ADDITION * addition : TRIPLES_PER_ADDITION * (addition + 1)]
        e0, e1, e2, e3, e4, e5, e6, e7 = e[0], e[1], e[2], e[3], e[4], e[5], e[6], e[7]
        for word in range(BLOCK_WORDS):
            ones = np.uint64(word)
            twos, fours = ones + _START[1], ones + _START[2]
            eights, sixteens = ones + _START[3], ones + _START[4]
            # Digits worth 1: eight from tables, one from before. A carry is worth twice as much.
            a0, b0 = full_add(table[e0 + ones], table[e1 + ones], table[e2 + ones])
            a1, b1 = full_add(table[e3 + ones], table[e4 + ones], table[e5 + ones])
            a2, b2 = full_add(table[e6 + ones], table[e7 + ones], planes[ones])
            planes[ones], b3 = full_add(a0, a1, a2)
            # Worth 2: eight from tables, four carries, one from before.
            a0, c0 = full_add(table[e0 + twos], table[e1 + twos], table[e2 + twos])
            a1, c1 = full_add(table[e3 + twos], table[e4 + twos], table[e5 + twos])
            a2, c2 = full_add(table[e6 + twos], table[e7 + twos], b0)
            a3, c3 = full_add(b1, b2, b3)
            a0, c4 = full_add(a0, a1, a2)
            planes[twos], c5 = full_add(a0, a3, planes[twos])
            # Worth 4: six carries, one from before.
            a0, b0 = full_add(c0, c1, c2)
            a1, b1 = full_add(c3, c4, c5)
            planes[fours], b2 = full_add(a0, a1, planes[fours])
            # Worth 8: three carries, one from before. Worth 16: two and one.
            a0, c0 = full_add(b0, b1, b2)
            planes[eights], c1 = full_add(a0, planes[eights], NO_BITS)
            planes[sixteens], planes[carries + ones] = full_add(c0, c1, planes[sixteens])
        digit = 5
        while BITS_PER_ADDITION * (addition + 1) >> digit:
            for word in range(BLOCK_WORDS):
                plane, carry = _START[digit] + np.uint64(word), carries + np.uint64(word)
                planes[plane], planes[carry] = planes[plane] ^ planes[carry], planes[plane] & planes[carry]
            digit += 1


@compiled()
def mark(start: int, stop: int, planes: Any) -> Any:
    """Write into row MARKED the items start..stop of the block.

    Returns:
        The first word with such an item and the word after the last, both rounded to whole vectors.
    """
    first_word, last_word = start // WORD_ITEMS, (stop - 1) // WORD_ITEMS
    first = first_word // VECTOR_WORDS * VECTOR_WORDS
    stop_word = (last_word // VECTOR_WORDS + 1) * VECTOR_WORDS
    marked = planes[MARKED * BLOCK_WORDS : (MARKED + 1) * BLOCK_WORDS]
    for word in range(first, stop_word):
        marked[word] = ALL if first_word <= word <= last_word else NO_BITS
    marked[first_word] &= ALL << np.uint64(start % WORD_ITEMS)
    marked[last_word] &= ALL >> np.uint64(WORD_ITEMS - 1 - (stop - 1) % WORD_ITEMS)
    return np.uint64(first), np.uint64(stop_word)


@compiled()
def count_marked(planes: Any, first: Any, stop_word: Any, code_length: int, counts: Any) -> None:
    """Add to counts[s] the number of marked items at the distance s, s = 0..K."""
    for s in range(0, code_length + 1, 8):
        # The items at eight distances that follow each other: of a block, most often none.
        if s % 64 == 0:
            for word in range(first, stop_word):
                planes[_START[NARROWED] + word] = planes[_START[MARKED] + word]
            digit = 6
            while code_length >> digit:
                flip = NO_BITS if s >> digit & 1 else ALL
                for word in range(first, stop_word):
                    planes[_START[NARROWED] + word] &= planes[_START[digit] + word] ^ flip
                digit += 1
        flip3 = NO_BITS if s & 8 else ALL
        flip4 = NO_BITS if s & 16 else ALL
        flip5 = NO_BITS if s & 32 else ALL
        n0 = n1 = n2 = n3 = n4 = n5 = n6 = n7 = NO_BITS
        for word in range(first, stop_word):
            items = planes[_START[NARROWED] + word] & (planes[_START[3] + word] ^ flip3)
            items &= (planes[_START[4] + word] ^ flip4) & (planes[_START[5] + word] ^ flip5)
            planes[_START[EIGHT] + word] = items
            n0 += popcount(items)
        if n0 == NO_BITS:
            continue
        for word in range(first, stop_word):
            items = planes[_START[EIGHT] + word]
            p0, p1, p2 = planes[word], planes[_START[1] + word], planes[_START[2] + word]
            n1 += popcount(items & p0)
            n2 += popcount(items & p1)
            n3 += popcount(items & p1 & p0)
            n4 += popcount(items & p2)
            n5 += popcount(items & p2 & p0)
            n6 += popcount(items & p2 & p1)
            n7 += popcount(items & p2 & p1 & p0)
        # Inclusion and exclusion: those were the items with at least the binary digits of 0..7.
        counts[s] += n0 - n1 - n2 + n3 - n4 + n5 + n6 - n7
        counts[s + 1] += n1 - n3 - n5 + n7
        counts[s + 2] += n2 - n3 - n6 + n7
        counts[s + 3] += n3 - n7
        counts[s + 4] += n4 - n5 - n6 + n7
        counts[s + 5] += n5 - n7
        counts[s + 6] += n6 - n7
        counts[s + 7] += n7


@compiled()
def _bits_of_triple(code: Any, first_bit: int) -> int:
    value = 0
    for place in range(3):
        bit = first_bit + place
        if bit < WORD_ITEMS * len(code) and (code[bit // 64] >> np.uint64(bit % 64)) & np.uint64(1):
            value |= 1 << place
    return value


@compiled()
def entries_of(query_words: Any, first_query: int, stop_query: int, triples: int) -> Any:
    """Where in the table of a block the numbers for the bits of each query stand: uint64 (queries, triples)."""
    entries = np.empty((stop_query - first_query, triples), dtype=np.uint64)
    for query in range(first_query, stop_query):
        for triple in range(triples):
            value = _bits_of_triple(query_words[query], 3 * triple)
            entries[query - first_query, triple] = (triple * 8 + value) * 2 * BLOCK_WORDS
    return entries


@compiled()
def count_items(
    first_query: int,
    stop_query: int,
    query_words: NDArray[np.uint64],
    tables: NDArray[np.uint64],
    starts: NDArray[np.int64],
    stops: NDArray[np.int64],
    items: int,
    code_length: int,
    counts: NDArray[np.int64],
) -> None:
    """Add to counts[:, q, s] the items, all and relevant, at the distance s from q.

    Args:
        first_query: the first of the queries to count for.
        stop_query: number of the query after the last. A block stays in the cache while all of them pass it.
        query_words: codes, uint64 (queries, words).
        tables: tables of `difference_tables`.
        starts: int64 (queries,); relevant to a query are the items from here
        stops: int64 (queries,), up to here.
        items: number of items.
        code_length: bits per code.
        counts: int64 (2, queries, code_length + 1 filled up to a multiple of eight).
    """
    planes = counting_memory(tables)
    entries = entries_of(query_words, first_query, stop_query, tables.shape[1])
    for block in range(tables.shape[0]):
        before = block * BLOCK_ITEMS
        table = tables[block].reshape(-1)
        for query in range(first_query, stop_query):
            sum_differences(table, entries[query - first_query], planes)
            first, stop_word = mark(0, min(items - before, BLOCK_ITEMS), planes)
            count_marked(planes, first, stop_word, code_length, counts[0, query])
            start, stop = max(starts[query] - before, 0), min(stops[query] - before, BLOCK_ITEMS)
            if start < stop:
                first, stop_word = mark(start, stop, planes)
                count_marked(planes, first, stop_word, code_length, counts[1, query])
