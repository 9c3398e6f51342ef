"""Vectors -> an index in a folder, block by block: memory does not grow with their number."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import INDEX_FILE
from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.embeddings.coder import Coder
from deephash_pipeline.embeddings.recall import (
    LEAST_HELD_OUT,
    RECALL_AT,
    ExactNeighbours,
    check_recall,
    measured_recall,
)
from deephash_pipeline.embeddings.shards import AnyVectors
from deephash_pipeline.embeddings.stored import Description, Rescore, save_hash_function
from deephash_pipeline.embeddings.unit import unit_rows
from deephash_pipeline.hamming.answers import GivenIds
from deephash_pipeline.hamming.features import FeatureType
from deephash_pipeline.hamming.ids import checked_ids
from deephash_pipeline.hamming.index import HammingIndex
from deephash_pipeline.hamming.index_folder import HASH_FUNCTION
from deephash_pipeline.hamming.replacing import replacing_index
from deephash_pipeline.hamming.texts import stored_labels
from deephash_pipeline.hashing import HASH_FUNCTIONS, HashFunction, require_hash_function
from deephash_pipeline.provenance import content_digest

METHOD, METHOD_OF_MORE_BITS = "pca_rotation", "rotation"
"""The usual hash function, and that for more bits than directions."""
# A gigabyte at most, with what is made of a block.
NUMBERS_OF_A_FIT = 2**25
ROWS_TO_FIT = 16_384
RECALL_STEPS = 100
# So many comparisons with held-out rows take a few seconds up to millions of vectors.
COMPARISONS = 2 * 10**9
LEAST_QUERIES, MOST_QUERIES = 100, 1000


@dataclass(frozen=True)
class BuildSettings:
    """How an index of vectors is made.

    Attributes:
        method: key of the hash function; None for the usual one that the vectors allow.
        code_length: bits per code.
        rescore: type that vectors are stored as to bring candidates into order.
        recall: the share of the exact answers that searches are to find.
        seed: number that decides every random draw.
        anew: True to replace an index that is there.

    Raises:
        InputError: one of them is out of range.
    """

    method: str | None
    code_length: int
    rescore: Rescore = "int8"
    recall: float = 0.99
    seed: int = 0
    anew: bool = False

    def __post_init__(self) -> None:
        if self.method is not None:
            require_hash_function(self.method)
        if self.rescore not in get_args(Rescore):
            raise InputError(f"rescore is {self.rescore!r}: choose one of {', '.join(get_args(Rescore))}")
        check_recall(self.recall)


def build_index(  # noqa: PLR0913 - what `VectorIndex.build` is given
    folder: Path,
    source: AnyVectors,
    settings: BuildSettings,
    ids: GivenIds | None = None,
    labels: Sequence[Any] | None = None,
    asked: AnyVectors | None = None,
) -> None:
    """Make an index of vectors in a folder; until it is whole, the folder is as it was.

    Args:
        folder: directory of the index.
        source: the vectors.
        settings: settings of the build.
        ids: ids of the vectors; the numbers of their rows by default.
        labels: names of their classes: metadata, and what supervised hash functions learn from.
        asked: queries to measure recall with; by default rows that are held out.

    Raises:
        InputError: a vector has no direction or a number that is not finite, an id is there twice, there is something
            in the folder, or the disk is full.
    """
    if (folder / INDEX_FILE).exists() and not settings.anew:
        raise InputError(f"{folder} has an index: name another folder, or replace that one by --anew")
    filling = Filling(source, settings, ids, labels, asked)
    with (
        replacing_index(folder) as beside,
        HammingIndex.create(beside, settings.code_length, *filling.form) as index,
    ):
        coder, about = filling.into(index)
        save_hash_function(beside, coder, about)
        index.mark(content_digest(beside / HASH_FUNCTION))
        index.keep_columns()


def built_in_memory(
    source: AnyVectors,
    settings: BuildSettings,
    ids: GivenIds | None = None,
    labels: Sequence[Any] | None = None,
    asked: AnyVectors | None = None,
) -> tuple[Coder, Description, HammingIndex]:
    """Make an index of vectors in memory; see `build_index`."""
    filling = Filling(source, settings, ids, labels, asked)
    index = HammingIndex(settings.code_length, *filling.form)
    return *filling.into(index), index


class Filling:
    """What is to be indexed, known to be right before anything is made; see `build_index` for its arguments."""

    def __init__(
        self,
        source: AnyVectors,
        settings: BuildSettings,
        ids: GivenIds | None,
        labels: Sequence[Any] | None,
        asked: AnyVectors | None,
    ) -> None:
        if source.count == 1:
            raise InputError(f"{source.name} has one vector: give two at least, of shape (n, width)")
        self.source, self.settings = source, settings
        self.ids = None if ids is None else checked_ids(ids, None)[0]
        self.classes = None if labels is None else stored_labels(labels)
        for what, values in (("ids", self.ids), ("labels", self.classes)):
            if values is not None and len(values) != source.count:
                raise InputError(f"there are {len(values)} {what} for {source.count} vectors: give one for each")
        self.held_out, self.to_fit = _drawn(source.count, settings.seed)
        if asked is None:
            self.queries = unit_rows(source.take(self.held_out), source.name, self.held_out)
        else:
            self.queries = _given_queries(asked, source, settings.seed)
            self.to_fit = np.sort(np.concatenate([self.held_out, self.to_fit]))
            self.held_out = np.full(len(self.queries), -1, dtype=np.int64)

    @property
    def form(self) -> tuple[int, FeatureType]:
        """Numbers of a vector that are kept, and as what."""
        kept = self.settings.rescore != "none"
        return (self.source.width if kept else 0, cast(FeatureType, self.settings.rescore if kept else "float16"))

    def into(self, index: HammingIndex) -> tuple[Coder, Description]:
        """Fill an index that is empty; return what makes its codes, and what was measured."""
        source, settings, kept = self.source, self.settings, self.form[0]
        exact = ExactNeighbours(self.held_out, self.queries, min(max(RECALL_AT), source.count))
        with count_steps("vectors", total=RECALL_STEPS, where="fitting a hash function") as advance:
            method, function = _fitted(source, settings, self.to_fit, self.classes)
            coder = Coder(method, settings.code_length, function.arrays())
            for block in source.blocks(max(1, NUMBERS_OF_A_FIT // source.width)):
                done = block.start + len(block.vectors)
                numbers = np.arange(block.start, done)
                unit = unit_rows(block.vectors, source.name, numbers)
                exact.pass_by(block.start, unit)
                metadata = dict(block.metadata)
                if self.classes is not None:
                    metadata["label"] = self.classes[block.start : done]
                names = numbers if self.ids is None else self.ids[numbers]
                index.add(names, coder.codes(unit), metadata, features=unit if kept else None)
                for _ in range(block.start * RECALL_STEPS // source.count, done * RECALL_STEPS // source.count):
                    advance(f"{done:,} of {source.count:,}")
            measured = measured_recall(index, exact, coder, settings.recall, partial(_unit_parts, source))
        return coder, Description(
            method=method,
            code_length=settings.code_length,
            width=source.width,
            rescore=settings.rescore,
            measured=measured,
        )


def _drawn(count: int, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that are searched with to measure recall, and other rows that the hash function learns from, ascending."""
    queries = min(count // 10, max(LEAST_QUERIES, min(MOST_QUERIES, COMPARISONS // count)))
    wanted = min(count, queries + ROWS_TO_FIT)
    drawn = np.random.default_rng(seed).choice(count, wanted, replace=False).astype(np.int64)
    return np.sort(drawn[:queries]), np.sort(drawn[queries:])


def _given_queries(asked: AnyVectors, source: AnyVectors, seed: int) -> NDArray[np.float32]:
    """Queries of length 1, at most so many as the comparisons allow."""
    if asked.width != source.width or asked.count < LEAST_HELD_OUT:
        raise InputError(
            f"{asked.name} has {asked.count} queries of {asked.width} numbers: give {LEAST_HELD_OUT} at least, of "
            f"{source.width} numbers"
        )
    most = max(LEAST_QUERIES, min(MOST_QUERIES, COMPARISONS // source.count))
    drawn = np.random.default_rng(seed).choice(asked.count, min(asked.count, most), replace=False)
    rows = np.sort(drawn).astype(np.int64)
    return unit_rows(asked.take(rows), asked.name, rows)


def _fitted(
    source: AnyVectors, settings: BuildSettings, rows: NDArray[np.int64], labels: Sequence[str] | None
) -> tuple[str, HashFunction]:
    unit = unit_rows(source.take(rows), source.name, rows)
    if settings.method is None:
        try:
            return METHOD, _made(METHOD, settings).fit(unit)
        except InputError:
            # More bits than directions in which the vectors differ.
            return METHOD_OF_MORE_BITS, _made(METHOD_OF_MORE_BITS, settings).fit(unit)
    function = _made(settings.method, settings)
    if function.supervised and labels is None:
        raise InputError(f"method {settings.method} learns from labels: give them by --labels, or choose another")
    y = None if labels is None else [labels[row] for row in rows.tolist()]
    return settings.method, function.fit(unit, y)


def _made(method: str, settings: BuildSettings) -> HashFunction:
    # A seed of its own: vectors that were drawn from the same one would be the directions themselves.
    return HASH_FUNCTIONS[method](settings.code_length, random_state=derive_seed(settings.seed, "hash function"))


def _unit_parts(source: AnyVectors, rows: NDArray[np.int64]) -> Iterator[NDArray[np.float32]]:
    first = 0
    for part in source.parts(rows):
        yield unit_rows(part, source.name, rows[first : first + len(part)])
        first += len(part)
