"""Codes to measure with: random ones, and ones as trained networks make them."""

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval import LabelledCodes, pack_bits
from deephash_pipeline.retrieval.codes import code_words

RANDOM, TRAINED = "random", "trained"
# Share of bits that differ from the prototype: most items keep near the least, a few are lost altogether.
MISLABELLED_SHARE, LEAST_FLIPPED_SHARE, TAIL_EXPONENT = 0.15, 0.015, 1.0


def synthetic_codes(  # noqa: PLR0913 (what measurements vary)
    codes: str, classes: int, code_length: int, queries: int, items: int, seed: int = 0
) -> LabelledCodes:
    """Draw labels uniformly and in no order, and codes that do not depend on them (random) or do (trained).

    A trained code is the prototype of a class, of its own class for all but the mislabelled, with bits flipped
    independently; the share of bits that an item flips follows Pareto's law, so many codes are equal and a few far off.
    Equal seeds give equal codes.
    """
    if codes not in (RANDOM, TRAINED):
        raise InputError(f"codes is {codes!r}; choose {RANDOM!r} or {TRAINED!r}.")
    generator = np.random.default_rng([seed, classes, code_length])
    prototypes = generator.random((classes, code_length)) < 0.5

    def draw(count: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        labels = generator.integers(0, classes, count)
        if codes == RANDOM:
            return pack_bits(generator.random((count, code_length)) < 0.5), labels
        mislabelled = generator.random(count) < MISLABELLED_SHARE
        seen_as = np.where(mislabelled, generator.integers(0, classes, count), labels)
        flipped_share = np.minimum(LEAST_FLIPPED_SHARE * (1 + generator.pareto(TAIL_EXPONENT, count)), 0.5)
        flips = generator.random((count, code_length)) < flipped_share[:, None]
        return pack_bits(prototypes[seen_as] ^ flips), labels

    database = draw(items)
    return LabelledCodes(*draw(queries), *database, code_length)


def first_queries(codes: LabelledCodes, count: int) -> LabelledCodes:
    """The same database with only the first `count` queries."""
    return codes._replace(query_codes=codes.query_codes[:count], query_labels=codes.query_labels[:count])


def rows_of_width(codes: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Packed codes in contiguous rows of `width` bytes, zeros at the end."""
    return np.ascontiguousarray(code_words(codes).view(np.uint8)[:, :width])
