"""Which codes are near enough to a query, by popcounts in vector registers, a chunk of codes at a time.

Words of equal place lie side by side, so that a vector holds a word of several codes. Up to eight words of a code are
read side by side and ahead of time, as fast as the memory gives them; only the near codes are marked. Where the
processor counts no ones of vectors, carry-save adders (Harley and Seal) make of eight words four whose ones count 1, 1,
2 and 4: half the work.
"""

from functools import reduce
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from deephash_pipeline.hamming.kernels.sliced import CODE, DISTANCE, NONE, ONE_WORD, WORD_CODES
from deephash_pipeline.hamming.kernels.vectors import ROW_WORDS, Vectors, cgutils, instructions, pointer_to
from deephash_pipeline.retrieval.kernels.compiled import inner, popcount

CHUNK_CODES = 1024
"""A multiple of 64: marks of codes are words."""
SIDE_BY_SIDE = 8
# How far ahead memory is fetched: as measured, with AVX2 and with AVX-512.
CODES_AHEAD, CODES_AHEAD_512 = 256, 128


def _counter(words: int) -> Any:
    """A function that adds so many words of codes to their distances from a query, and marks the near ones.

    Its arguments:
        codes: flat; the first word of the first code is
        at: here.
        stride: from one word of a code to its next.
        rows: how many times eight codes there are.
        queries: flat; the first word of the query is
        of_query: here.
        distances: uint64, one for each code; changed.
        more: whether distances so far count; or else they are zeros.
        limit: the largest distance that counts.
        marks: uint64, written: bit i of word w is set if code 64 w + i is at most that far.
    """

    def add(
        _typing: Any, codes: Any, at: Any, stride: Any, rows: Any, queries: Any, of_query: Any,
        distances: Any, more: Any, limit: Any, marks: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _, at, stride, rows, _, of_query, _, more, limit, _ = arguments
            codes, queries, distances, marks = (
                pointer_to(context, builder, signature.args[place], arguments[place]) for place in (0, 4, 6, 9)
            )
            vectors = Vectors(context, builder)
            marks, mark = builder.bitcast(marks, ir.IntType(8).as_pointer()), ir.IntType(vectors.words)
            places = [at.type(place) for place in range(words)]
            wanted = [vectors.spread(builder.load(builder.gep(queries, [builder.add(of_query, p)]))) for p in places]
            begins = [builder.gep(codes, [builder.add(at, builder.mul(stride, place))]) for place in places]
            farthest = vectors.spread(limit)
            ahead = at.type(CODES_AHEAD_512 if vectors.ternary else CODES_AHEAD)
            with cgutils.for_range(builder, rows) as loop:
                soon = builder.add(builder.mul(loop.index, at.type(ROW_WORDS)), ahead)
                for begin in begins:
                    vectors.fetch(begin, soon)
                near: Any = ir.IntType(8)(0)
                for part in vectors.parts():
                    differ = [
                        builder.xor(vectors.load(begin, loop.index, part), bits)
                        for begin, bits in zip(begins, wanted, strict=True)
                    ]
                    before = vectors.load_if(more, distances, loop.index, part)
                    total = reduce(builder.add, _ones(vectors, differ), before)
                    vectors.store(total, distances, loop.index, part)
                    of_part = builder.bitcast(builder.icmp_signed("<=", total, farthest), mark)
                    wide = builder.zext(of_part, near.type) if vectors.words < ROW_WORDS else of_part
                    near = builder.or_(near, builder.shl(wide, near.type(part)))
                builder.store(near, builder.gep(marks, [loop.index]))
            return context.get_dummy_value()

        number = types.int64
        return types.void(
            codes, number, number, number, queries, number, distances, types.boolean, number, marks
        ), generate

    return instructions(add)


def _ones(vectors: Vectors, differ: list[Any]) -> list[Any]:
    """Vectors that add up to how many ones there are."""
    if vectors.counts or len(differ) < SIDE_BY_SIDE:
        return [vectors.popcount(vector) for vector in differ]
    ones, twos0 = vectors.full_add(*differ[:3])
    more, twos1 = vectors.full_add(*differ[3:6])
    ones, twos2 = vectors.full_add(ones, more, differ[6])
    twos, fours = vectors.full_add(twos0, twos1, twos2)
    worth = ((ones, 0), (differ[7], 0), (twos, 1), (fours, 2))
    return [vectors.builder.shl(vectors.popcount(vector), vectors.constant(shift)) for vector, shift in worth]


_count_1, _count_2, _count_4, _count_8 = _counter(1), _counter(2), _counter(4), _counter(SIDE_BY_SIDE)


@inner
def scan_chunk(
    words: NDArray[np.uint64],
    first: int,
    stop: int,
    queries: NDArray[np.uint64],
    query: int,
    limit: int,
    of_use: NDArray[np.uint64],
    distances: NDArray[np.uint64],
    marks: NDArray[np.uint64],
    near: NDArray[np.int64],
) -> int:
    """List those of codes first..stop that are of use and whose distance from a query is at most `limit`.

    Args:
        words: codes, uint64 (words, codes).
        first: the first code, a multiple of 64.
        stop: number of the code after the last; at most CHUNK_CODES in all.
        queries: codes, uint64 (queries, words).
        query: number of the query among them.
        limit: the largest distance that counts.
        of_use: bitmap of the codes to list; empty if all are.
        distances: uint64 (CHUNK_CODES,), working memory.
        marks: uint64 (CHUNK_CODES / 64,), working memory.
        near: int64 (CHUNK_CODES, 2), written: codes and distances.

    Returns:
        Number of codes listed.
    """
    length, stride, size = len(words), words.shape[1], stop - first
    rows = size // ROW_WORDS
    marks[(size - 1) // WORD_CODES] = NONE
    word = 0
    while word < length:
        at, of_query, left = word * stride + first, query * length + word, length - word
        if left >= SIDE_BY_SIDE:
            _count_8(words, at, stride, rows, queries, of_query, distances, word > 0, limit, marks)
            word += SIDE_BY_SIDE
        elif left >= 4:
            _count_4(words, at, stride, rows, queries, of_query, distances, word > 0, limit, marks)
            word += 4
        elif left >= 2:
            _count_2(words, at, stride, rows, queries, of_query, distances, word > 0, limit, marks)
            word += 2
        else:
            _count_1(words, at, stride, rows, queries, of_query, distances, word > 0, limit, marks)
            word += 1
    for place in range(rows * ROW_WORDS, size):
        distances[place] = NONE
        for word in range(length):
            distances[place] += popcount(words[word, first + place] ^ queries[query, word])
        if np.int64(distances[place]) <= limit:
            marks[place // WORD_CODES] |= ONE_WORD << np.uint64(place % WORD_CODES)
    listed = 0
    for group in range((size + WORD_CODES - 1) // WORD_CODES):
        marked = marks[group]
        if len(of_use):
            marked &= of_use[first // WORD_CODES + group]
        while marked != NONE:
            lowest = marked & (~marked + ONE_WORD)
            code = group * WORD_CODES + np.int64(popcount(lowest - ONE_WORD))
            near[listed, CODE], near[listed, DISTANCE] = first + code, np.int64(distances[code])
            listed += 1
            marked ^= lowest
    return listed
