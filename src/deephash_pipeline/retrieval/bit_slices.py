"""Bit-sliced codes: a word holds the same bit of 64 items, so that one logical operation treats all of them."""

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from deephash_pipeline.retrieval.compiled import in_threads

WORD_ITEMS = 64
# A block's table takes 2 KiB per word at 48 bits: with 128 words it stays in the second-level cache.
BLOCK_WORDS = 128
BLOCK_ITEMS = BLOCK_WORDS * WORD_ITEMS
CACHE_LINE_BYTES = 64
TRIPLES_PER_ADDITION = 8
BITS_PER_ADDITION = 3 * TRIPLES_PER_ADDITION

NONE = np.uint64(0)
ALL = np.uint64(0xFFFF_FFFF_FFFF_FFFF)


def difference_tables(words: NDArray[np.uint64], code_length: int) -> NDArray[np.uint64]:
    """Tabulate in how many bits of each triple the items of a database differ from each query there can be.

    Args:
        words: codes, uint64 (items, words), see `code_words`.
        code_length: bits per code, 1..256.

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


@njit(cache=True, nogil=True)
def full_add(a: Any, b: Any, c: Any) -> Any:
    """Add three binary digits of 64 items: digit and carry."""
    return a ^ b ^ c, (a & b) | (c & (a | b))


@njit(cache=True, nogil=True)
def _fill_tables(words: Any, first_block: int, behind_block: int, tables: Any) -> None:
    for block in range(first_block, behind_block):
        _fill_table(words, block * BLOCK_ITEMS, tables[block])


@njit(cache=True, nogil=True)
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
                collected = NONE
                if bit < bits:
                    for item in range(len(codes)):
                        collected |= ((codes[item] >> shift) & np.uint64(1)) << np.uint64(item)
                plane[place, word] = collected
        for value in range(8):
            flip0 = ALL if value & 1 else NONE
            flip1 = ALL if value & 2 else NONE
            flip2 = ALL if value & 4 else NONE
            ones, twos = table[triple, value, 0], table[triple, value, 1]
            for word in range(BLOCK_WORDS):
                ones[word], twos[word] = full_add(
                    plane[0, word] ^ flip0, plane[1, word] ^ flip1, plane[2, word] ^ flip2
                )
