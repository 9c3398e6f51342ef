"""`VectorIndex`: vectors under ids, searched by cosine."""

import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.own_settings import own_settings
from deephash_pipeline.embeddings.building import (
    CODE_LENGTH,
    AnyVectors,
    BuildSettings,
    Rescore,
    build_index,
    unit_rows,
)
from deephash_pipeline.embeddings.recall import Expected
from deephash_pipeline.embeddings.shards import open_vectors
from deephash_pipeline.embeddings.sources import ArrayVectors
from deephash_pipeline.embeddings.stored import Description, load_hash_function
from deephash_pipeline.hamming.answers import Answers, GivenIds, ItemId
from deephash_pipeline.hamming.coded import CodedItems
from deephash_pipeline.hamming.filters import Where
from deephash_pipeline.hamming.index import HammingIndex
from deephash_pipeline.hamming.replacing import HASH_FUNCTION, holds_vectors, refuse_exchanged
from deephash_pipeline.hamming.reranking import ByFeatures
from deephash_pipeline.hamming.texts import label_names
from deephash_pipeline.hashing import Encoder
from deephash_pipeline.provenance import content_digest
from deephash_pipeline.retrieval import pack_bits
from deephash_pipeline.retrieval.codes import check_count

WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
"""As an integer id is written, which may have so many digits; ``007`` is not 7."""
MOST_OF_A_MEAN = 4096
"""Vectors whose mean, and directions from it, tell what is of their kind."""
HALF, MARGIN = 0.5, 0.5
FEWEST = 100
"""With fewer vectors their range is not known."""
UNLIKE = 1024
"""Candidates for each answer to queries of another kind, of which codes tell less."""
OTHER_KIND = (
    "the queries are of another kind than its vectors, with which recall was measured: more candidates are compared; "
    "build with --queries FILE of such ones to know their recall"
)
NEW_ID_BITS = 53
"""JavaScript knows whole numbers of so many."""

logger = logging.getLogger(__name__)


class VectorIndex(CodedItems):
    """A hash function, the index of its codes, and the vectors in few bytes.

    A search finds the nearest codes, and brings so many of them into the order of the cosine as the recall takes that
    was asked for. Answers have cosine distances, 1 - cosine, as `scores`.

    Args:
        encoder: encoder that makes the codes.
        description: description of the index, and what was measured.
        index: index of codes and vectors.
        folder: directory of the index.

    Attributes:
        has_warned: whether queries were of another kind, see `of_another_kind`.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> vectors = np.random.default_rng(0).normal(size=(500, 64)).astype(np.float32)
        >>> with TemporaryDirectory() as folder:
        ...     with VectorIndex.build(f"{folder}/papers.index", vectors, code_length=64) as index:
        ...         index.search(vectors[7:9], 3).ids[:, 0].tolist()
        [7, 8]
    """

    index: HammingIndex

    def __init__(self, encoder: Encoder, description: Description, index: HammingIndex, folder: Path) -> None:
        super().__init__(index, folder)
        self.encoder, self.description = encoder, description
        self.width = description.width
        self.has_warned = False

    @classmethod
    @own_settings()
    def build(
        cls,
        folder: str | Path,
        vectors: Any,
        ids: GivenIds | None = None,
        *,
        metadata: Mapping[str, Sequence[Any]] | None = None,
        labels: Sequence[Any] | None = None,
        method: str | None = None,
        code_length: int = CODE_LENGTH,
        rescore: Rescore = "int8",
        recall: float = 0.99,
        queries: Any = None,
        seed: int = 0,
        anew: bool = False,
    ) -> Self:
        """Make an index in a folder, and open it.

        Args:
            folder: directory of the index.
            vectors: float16, float32 or float64 (n, width), mapped arrays too; a path of `open_vectors`, or a source.
            ids: 64-bit integers or strings, one for each; the numbers of their rows by default.
            metadata: values of an array's vectors by column, one for each.
            labels: names of classes, one for each: metadata, and what supervised hash functions learn from.
            method: key of a hash function; by default ``pca_rotation``, or ``rotation`` for more bits than directions.
            code_length: bits per code, 1..4096.
            rescore: type that vectors are stored as to bring candidates into order, ``int8``, ``float16`` or ``none``.
            recall: the share of the exact answers that searches are to find.
            queries: vectors, or a path of them, to measure recall with, such as texts that search images; by default
                rows that are held out, which tells of queries like the vectors alone.
            seed: number that decides every random draw.
            anew: True to replace an index that is there.

        Raises:
            InputError: an argument has another form, a vector has no direction, or the disk is full; the folder is then
                as it was.
        """
        source = _source(vectors, metadata)
        ids = getattr(source, "ids", None) if ids is None else ids
        settings = BuildSettings(method, code_length, rescore, recall, seed, anew)
        build_index(Path(folder), source, settings, ids, labels, None if queries is None else _source(queries, None))
        return cls.open(folder)

    @classmethod
    def open(cls, folder: str | Path, read_only: bool = False) -> Self:
        """Open an index.

        Args:
            folder: directory of the index.
            read_only: True if others may write meanwhile; every search then sees what they have written before it.

        Raises:
            InputError: there is none, it is damaged, or, unless read_only, another process writes.
        """
        path = Path(folder)
        refuse_exchanged(path)
        if not holds_vectors(path):
            raise InputError(f"{path} is no index of vectors: make one by `index build {path} --vectors ...`")
        encoder, description = load_hash_function(path)
        index = HammingIndex.open(path, read_only)
        try:
            if index.made_by != content_digest(path / HASH_FUNCTION):
                raise InputError(f"{path / HASH_FUNCTION} is not what made the codes of this index: put that one back")
            return cls(encoder, description, index, path)
        except BaseException:
            index.close()
            raise

    @property
    def maker(self) -> str:
        """Method, and how vectors are stored."""
        return f"{self.description.method}, rescored by {self.description.rescore}"

    def path_of(self, metadata: dict[str, Any]) -> None:
        """Vectors have no pictures, whatever their metadata say."""

    def __repr__(self) -> str:
        about = self.description
        return f"VectorIndex({about.method}, {about.code_length} bits, rescoring by {about.rescore})"

    def id_of(self, text: str) -> ItemId:
        """The id that is written as a text, in an index whose ids are integers too."""
        return int(text) if self.index.integer_ids and WHOLE_NUMBER.fullmatch(text) else text

    def new_id(self) -> ItemId:
        """An id for an item that comes without one."""
        return secrets.randbits(NEW_ID_BITS) if self.index.integer_ids else super().new_id()

    @own_settings()
    def encode(self, vectors: Any) -> NDArray[np.uint8]:
        """Packed codes of vectors, uint8 (n, ceil(code_length / 8))."""
        return self._coded(vectors, "vectors")[1]

    @own_settings()
    def add(
        self,
        vectors: Any,
        ids: GivenIds,
        metadata: Mapping[str, Sequence[Any]] | None = None,
        *,
        labels: Sequence[Any] | None = None,
        replace: bool = False,
    ) -> None:
        """Add vectors; when this returns, they are stored for good and found by the next search.

        Args:
            vectors: real numbers (n, width).
            ids: one for each, of the kind that the index has.
            metadata: values by column, one for each.
            labels: names of classes, one for each.
            replace: True if a vector of the same id gives way; otherwise it is an error.

        Raises:
            InputError: see `build`, and `HammingIndex.add`; nothing is added then.
        """
        unit, codes = self._coded(vectors, "vectors")
        if labels is not None:
            metadata = {**(metadata or {}), "label": label_names(labels)}
        self.index.add(ids, codes, metadata, features=unit if self.index.features else None, replace=replace)

    def expected(self, k: int, recall: float | None = None, conditions: bool = False) -> Expected:
        """How many candidates for each of k answers a search rescores, and the recall that was measured with them.

        Args:
            k: number of vectors that are to be found.
            recall: wanted share of the exact answers; by default what the index was built for.
            conditions: True under conditions, with which nothing was measured.
        """
        return self.description.measured.expected(k, recall, conditions)

    def of_another_kind(self, queries: NDArray[np.float32]) -> bool:
        """Whether most queries of length 1, float32 (n, width), point elsewhere than all vectors.

        So do texts that search images. The cosine with the mean of all tells. False where recall was measured with
        queries that were given.
        """
        if len(self.index) < FEWEST or not self.index.features or self.description.measured.given:
            return False
        mean, least, most = self._middle
        cosines = queries @ mean
        return bool(((cosines < least) | (cosines > most)).mean() > HALF)

    @cached_property
    def _middle(self) -> tuple[NDArray[np.float32], float, float]:
        """The mean of the vectors, and the range of their cosines with it, as they were when first asked for."""
        sample = self.index.features_of(self.index.sample(MOST_OF_A_MEAN, seed=0))
        mean = sample.mean(axis=0)
        cosines = sample @ mean
        margin = MARGIN * float(cosines.std())
        return mean, float(cosines.min()) - margin, float(cosines.max()) + margin

    @own_settings()
    def search(self, queries: Any, k: int, where: Where | None = None, recall: float | None = None) -> Answers:
        """Find the k nearest of each query.

        Args:
            queries: real numbers (queries, width) or (width,).
            k: number of items, at least 1; fewer are found if fewer items match.
            where: conditions on metadata, see `HammingIndex.search`.
            recall: recall that is wanted, see `expected`.

        Returns:
            The answers, whose `scores` are cosine distances, or None where vectors are not stored.

        Raises:
            InputError: an argument has another form.
        """
        unit, codes = self._coded(queries, "queries")
        return self._searched(unit, codes, check_count(k, "k"), where, recall)

    @own_settings()
    def search_by_id(self, name: ItemId, k: int, where: Where | None = None, recall: float | None = None) -> Answers:
        """Find the k nearest of an item of the index, without itself; see `search`."""
        k = check_count(k, "k")
        code = self.index.get(name).code[np.newaxis]
        found = self._searched(self.index.features_of([name]), code, k + 1, where, recall)
        others = np.flatnonzero(found.ids[0] != name)[:k]
        scores = None if found.scores is None else found.scores[:, others]
        return Answers(found.ids[:, others], found.distances[:, others], scores)

    def _searched(
        self, unit: NDArray[np.float32], codes: NDArray[np.uint8], k: int, where: Where | None, recall: float | None
    ) -> Answers:
        if not self.index.features:
            return self.index.search(codes, k, where)
        unlike = self.of_another_kind(unit)
        if unlike and not self.has_warned:
            self.has_warned = True
            logger.warning("%s: %s", self.folder, OTHER_KIND)
        expected = self.expected(k, recall, bool(where) or unlike)
        oversampling = UNLIKE if unlike else expected.oversampling
        found = self.index.search(codes, k, where, ByFeatures(unit, k * oversampling))
        assert found.scores is not None
        # Of vectors of length 1 the squared distance is twice that of the cosine.
        return replace(found, scores=found.scores / np.float32(2))

    def _coded(self, vectors: Any, name: str) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        source = ArrayVectors(vectors, name)
        if source.width != self.width:
            raise InputError(f"{name} have {source.width} numbers, this index has {self.width}")
        unit = unit_rows(source.take(np.arange(source.count)), name, np.arange(source.count))
        return unit, pack_bits(self.encoder.transform(unit))


def _source(vectors: Any, metadata: Mapping[str, Sequence[Any]] | None) -> AnyVectors:
    if isinstance(vectors, str | Path):
        vectors = open_vectors(vectors)
    if not isinstance(vectors, np.ndarray) and hasattr(vectors, "blocks"):
        if metadata:
            raise InputError("metadata are of an array: give them as columns of the file, or load the vectors")
        source: AnyVectors = vectors
        return source
    return ArrayVectors(vectors, metadata=metadata)
