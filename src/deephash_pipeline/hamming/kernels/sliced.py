"""Which of 512 codes are near enough to a query, all of them at a time: one vector register of AVX-512, two of AVX2.

The codes of a block are turned on their side: a *row* is eight words with one bit of every code. Bits come in threes,
and in how many of three bits a code differs from a query is a number of two binary digits that is tabulated for the
eight triples a query can have. Full adders add the numbers of up to 24 triples, a *unit*, to the binary digits
of the distances so far, and a chain of borrows compares those with the limit. A distance is written down only where it
is near enough.

The table of a unit stays in the first-level cache. Turning and tabulating a block costs about as much as ten queries
do, so a batch makes the tables anew, and an index needs no memory beyond its codes.
"""

import math
from functools import reduce
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from deephash_pipeline.hamming.kernels.vectors import ROW_WORDS, Vectors, cgutils, instructions, pointer_to
from deephash_pipeline.retrieval.kernels.compiled import inner, popcount

WORD_CODES = 64
BLOCK_CODES = ROW_WORDS * WORD_CODES
UNIT_TRIPLES = 24
UNIT_BITS = 3 * UNIT_TRIPLES
UNIT_DIGITS = 7
"""Binary digits of the number that the triples of a unit add up to."""
SLICED_ROWS = UNIT_TRIPLES * 8 * 2
"""Of a triple in a table: eight values, two digits."""
ENTRY_BYTES = 2 * 8 * ROW_WORDS
"""Of a value of a triple."""
QUERIES_AT_ONCE = 256
"""Queries that pass a block side by side: what is known of their distances stays in the cache."""
CODE, DISTANCE = 0, 1
"""Columns of a list of near codes."""

NONE = np.uint64(0)
ONE_WORD = np.uint64(1)
_EVERY_EIGHTH = np.uint64(0x0101_0101_0101_0101)
_TOGETHER = np.uint64(0x0102_0408_1020_4080)

Working = tuple[
    NDArray[np.uint16],
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.uint64],
    NDArray[np.int64],
]
"""Working memory for some queries, see `working_memory`."""


def working_memory(queries: NDArray[np.uint64], code_length: int) -> Working:
    """What a thread needs to compare queries, uint64 (n, words), with blocks.

    Returns:
        Where in the tables the numbers for queries begin, in bytes, uint16 (units, n, UNIT_TRIPLES); the table of a
        unit, uint64 (SLICED_ROWS, ROW_WORDS); the binary digits of the distances of some queries, uint64
        (QUERIES_AT_ONCE, digits, ROW_WORDS); the rows of a block, uint64 (bits, ROW_WORDS); marks of codes
        that are near and of those that are of use, uint64 (2, ROW_WORDS); numbers of queries, int64 (QUERIES_AT_ONCE,).
    """
    units = -(-code_length // UNIT_BITS)
    bits = np.unpackbits(queries.view(np.uint8), axis=1, bitorder="little")[:, : units * UNIT_BITS]
    bits = np.pad(bits, ((0, 0), (0, units * UNIT_BITS - bits.shape[1]))).reshape(len(queries), units, UNIT_TRIPLES, 3)
    entries = 8 * np.arange(UNIT_TRIPLES, dtype=np.uint16) + bits @ np.array([1, 2, 4], dtype=np.uint16)
    digits = max(UNIT_DIGITS, code_length.bit_length())
    return (
        np.ascontiguousarray((ENTRY_BYTES * entries).swapaxes(0, 1)),
        _aligned(SLICED_ROWS),
        _aligned(QUERIES_AT_ONCE, digits),
        _aligned(max(units * UNIT_BITS, WORD_CODES * queries.shape[1])),
        _aligned(2),
        np.empty(QUERIES_AT_ONCE, dtype=np.int64),
    )


def _aligned(*shape: int) -> NDArray[np.uint64]:
    """Rows of zeros: a vector that crosses the border of a cache line would take twice as long to load."""
    words = math.prod(shape) * ROW_WORDS
    memory = np.zeros(words + ROW_WORDS, dtype=np.uint64)
    first = (-memory.ctypes.data // 8) % ROW_WORDS
    return memory[first : first + words].reshape(*shape, ROW_WORDS)


def _put(vectors: Vectors, waiting: list[list[Any]], vector: Any, digit: int) -> None:
    """Let a vector wait to be added to others of its digit: three at a time, so that few are in registers at once."""
    waiting[digit].append(vector)
    if len(waiting[digit]) == 3 and digit < UNIT_DIGITS:
        total, carry = vectors.full_add(*waiting[digit])
        waiting[digit] = [total]
        _put(vectors, waiting, carry, digit + 1)


def _adder(triples: int) -> Any:
    """A function that adds the numbers of so many triples to the distances of a block.

    Its arguments:
        table: with these triples, see `tabulate`.
        entries, at: those of `working_memory`, flat, and where those of the query and unit begin.
        sums, start: binary digits of distances, a row each, the lowest first, and the first row of the query.
        digits: how many there are.
        more: whether distances so far count; or else they are zeros.
    """

    def add(_typing: Any, table: Any, entries: Any, at: Any, sums: Any, start: Any, digits: Any, more: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            of_table, of_entries, _, of_sums, *_ = signature.args
            _, _, at, _, start, digits, more = arguments
            table, entries, sums = (
                pointer_to(context, builder, of_array, array)
                for of_array, array in ((of_table, arguments[0]), (of_entries, arguments[1]), (of_sums, arguments[3]))
            )
            vectors = Vectors(context, builder)
            table = builder.bitcast(table, ir.IntType(8).as_pointer())
            for word in vectors.parts():
                waiting = [
                    [vectors.load_if(more, sums, builder.add(start, start.type(digit)), word)]
                    for digit in range(UNIT_DIGITS)
                ] + [[]]
                for triple in range(triples):
                    entry = builder.load(builder.gep(entries, [builder.add(at, at.type(triple))]))
                    row = builder.gep(table, [builder.zext(entry, at.type)])
                    _put(vectors, waiting, vectors.load(row, at.type(0), word), 0)
                    _put(vectors, waiting, vectors.load(row, at.type(1), word), 1)
                for digit in range(UNIT_DIGITS):
                    if len(waiting[digit]) == 2:
                        total, carry = builder.xor(*waiting[digit]), builder.and_(*waiting[digit])
                        waiting[digit] = [total]
                        _put(vectors, waiting, carry, digit + 1)
                    vectors.store(waiting[digit][0], sums, builder.add(start, start.type(digit)), word)
                # At most one of them is set: no distance so far has twice as many as the digits of a unit.
                carry = reduce(builder.or_, waiting[UNIT_DIGITS])
                carried = cgutils.alloca_once_value(builder, carry)
                with cgutils.for_range(builder, digits, start=digits.type(UNIT_DIGITS)) as loop:
                    row, carry = builder.add(start, loop.index), builder.load(carried)
                    lower = vectors.load_if(more, sums, row, word)
                    vectors.store(builder.xor(lower, carry), sums, row, word)
                    builder.store(builder.and_(lower, carry), carried)
            return context.get_dummy_value()

        signature = types.void(table, entries, types.int64, sums, types.int64, types.int64, types.boolean)
        return signature, generate

    return instructions(add)


add_8, add_16, add_24 = _adder(8), _adder(16), _adder(24)


@instructions
def turn(_typing: Any, codes: Any, at: Any, rows: Any, top: Any) -> Any:
    """Turn a word of the codes of a block on their side: those from place `at` of codes, flat, to rows from `top` on.

    Bit i of rows[top + b, g] is then bit b of the word of code 8 i + g.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, at, _, top = arguments
        codes, rows = (pointer_to(context, builder, signature.args[i], arguments[i]) for i in (0, 2))
        vectors = Vectors(context, builder)
        source, target = builder.gep(codes, [at]), builder.gep(rows, [builder.mul(top, top.type(ROW_WORDS))])
        # A matrix is transposed by swapping two of its quarters, then two quarters of each quarter, and so on: first
        # among rows that are eight apart, then among eight that follow each other.
        for memory, spread in ((source, 8), (target, 1)):
            with cgutils.for_range(builder, top.type(8)) as loop:
                lowest = loop.index if spread == 8 else builder.mul(loop.index, top.type(8))
                places = [builder.add(lowest, top.type(spread * row)) for row in range(8)]
                for word in vectors.parts():
                    eight = [vectors.load(memory, place, word) for place in places]
                    for apart in (4, 2, 1):
                        width = spread * apart
                        mask = sum(1 << bit for bit in range(64) if not bit & width)
                        for row in range(8):
                            if row & apart:
                                continue
                            upper, lower = eight[row], eight[row + apart]
                            shifted = builder.xor(builder.lshr(upper, vectors.constant(width)), lower)
                            swapped = builder.and_(shifted, vectors.constant(mask))
                            eight[row + apart] = builder.xor(lower, swapped)
                            eight[row] = builder.xor(upper, builder.shl(swapped, vectors.constant(width)))
                    for place, vector in zip(places, eight, strict=True):
                        vectors.store(vector, target, place, word)
        return context.get_dummy_value()

    return types.void(codes, types.int64, rows, types.int64), generate


@instructions
def tabulate(_typing: Any, rows: Any, first: Any, triples: Any, table: Any) -> Any:
    """Fill a table with so many triples of rows, flat, from row `first` on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, first, triples, _ = arguments
        rows, table = (pointer_to(context, builder, signature.args[i], arguments[i]) for i in (0, 3))
        vectors = Vectors(context, builder)
        with cgutils.for_range(builder, triples) as loop:
            bit = builder.add(first, builder.mul(loop.index, first.type(3)))
            of_triple = builder.mul(loop.index, first.type(16))
            for word in vectors.parts():
                differ = [vectors.load(rows, builder.add(bit, bit.type(place)), word) for place in range(3)]
                same = [builder.not_(vector) for vector in differ]
                for value in range(8):
                    three = [(same if value >> place & 1 else differ)[place] for place in range(3)]
                    for digit, vector in enumerate(vectors.full_add(*three)):
                        vectors.store(vector, table, builder.add(of_triple, bit.type(2 * value + digit)), word)
        return context.get_dummy_value()

    return types.void(rows, types.int64, types.int64, table), generate


@instructions
def mark_near(_typing: Any, sums: Any, start: Any, digits: Any, limit: Any, marks: Any) -> Any:
    """Mark the codes of a block that are of use and at most `limit` away, see `add_8`; return whether there is one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, start, digits, limit, _ = arguments
        sums, marks = (pointer_to(context, builder, signature.args[i], arguments[i]) for i in (0, 4))
        vectors = Vectors(context, builder)
        any_near = start.type(0)
        for word in vectors.parts():
            # Whether numbers are near enough from a digit down, given whether they are from the digit below.
            near = cgutils.alloca_once_value(builder, vectors.constant((1 << 64) - 1))
            with cgutils.for_range(builder, digits) as loop:
                digit = vectors.load(sums, builder.add(start, loop.index), word)
                of_limit = builder.sub(start.type(0), builder.and_(builder.lshr(limit, loop.index), start.type(1)))
                below = builder.load(near)
                builder.store(vectors.majority(builder.not_(digit), vectors.spread(of_limit), below), near)
            found = builder.and_(builder.load(near), vectors.load(marks, start.type(1), word))
            vectors.store(found, marks, start.type(0), word)
            for place in range(vectors.words):
                any_near = builder.or_(any_near, builder.extract_element(found, ir.IntType(32)(place)))
        return builder.icmp_unsigned("!=", any_near, any_near.type(0))

    return types.boolean(sums, types.int64, types.int64, types.int64, marks), generate


@inner
def turn_block(words: Any, first: int, stop: int, planes: Any) -> None:
    """Turn codes first..stop, a block or fewer, of uint64 (words, codes) into planes, a word after the other."""
    for word in range(len(words)):
        top = WORD_CODES * word
        if stop - first == BLOCK_CODES:
            turn(words, word * words.shape[1] + first, planes, top)
        else:
            for code in range(stop - first):
                planes[top + code // ROW_WORDS, code % ROW_WORDS] = words[word, first + code]
            turn(planes, top * ROW_WORDS, planes, top)


@inner
def mark_of_use(of_use: Any, first: int, marks: Any) -> None:
    """Turn marks of the codes of a block on their side, as `turn` does with the codes.

    Args:
        of_use: bitmap of codes, uint64; empty if all are of use.
        first: the first code of the block.
        marks: uint64 (ROW_WORDS,), written: bit i of word g is that of code 8 i + g.
    """
    begin = first // WORD_CODES
    for lane in range(ROW_WORDS):
        marks[lane] = NONE if len(of_use) else ~NONE
        for word in range(begin, min(begin + ROW_WORDS, len(of_use))):
            # The product brings every eighth bit together in the highest byte.
            eight = ((of_use[word] >> np.uint64(lane)) & _EVERY_EIGHTH) * _TOGETHER >> np.uint64(56)
            marks[lane] |= eight << np.uint64(8 * (word - begin))


@inner
def list_marked(sums: Any, query: int, marks: Any, first: int, begin: int, stop: int, near: Any) -> int:
    """List those of codes begin..stop of a block that `mark_near` has marked; return their number.

    Args:
        sums: binary digits of distances, uint64 (queries, digits, ROW_WORDS).
        query: the query in question.
        marks: uint64 (ROW_WORDS,).
        first: the first code of the block.
        begin: the first code to list.
        stop: number of the code after the last.
        near: int64 (BLOCK_CODES, 2), written: codes and distances.
    """
    listed, of_any = 0, NONE
    for lane in range(ROW_WORDS):
        of_any |= marks[lane]
    while of_any != NONE:
        lowest = of_any & (~of_any + ONE_WORD)
        bit = popcount(lowest - ONE_WORD)
        of_any ^= lowest
        for lane in range(ROW_WORDS):
            code = first + ROW_WORDS * np.int64(bit) + lane
            if marks[lane] & lowest != NONE and begin <= code < stop:
                distance = NONE
                for digit in range(sums.shape[1]):
                    distance |= ((sums[query, digit, lane] >> bit) & ONE_WORD) << np.uint64(digit)
                near[listed, CODE], near[listed, DISTANCE] = code, np.int64(distance)
                listed += 1
    return listed
