"""`VectorIndex`: vectors under ids, searched by cosine."""

import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.own_settings import own_settings
from deephash_pipeline.embeddings.answers import CosineAnswers, VectorItem
from deephash_pipeline.embeddings.coder import Coder
from deephash_pipeline.embeddings.kind import OTHER_KIND, UNLIKE, Kind
from deephash_pipeline.embeddings.numbers import array_of, reals
from deephash_pipeline.embeddings.recall import Expected, check_recall, reranking_of
from deephash_pipeline.embeddings.shards import source_of
from deephash_pipeline.embeddings.stored import CODE_LENGTH, Description, Rescore, load_hash_function
from deephash_pipeline.embeddings.unit import unit_rows
from deephash_pipeline.hamming.answers import GivenIds, ItemId
from deephash_pipeline.hamming.coded import CodedItems
from deephash_pipeline.hamming.conditions import Where
from deephash_pipeline.hamming.index import HammingIndex
from deephash_pipeline.hamming.index_folder import HASH_FUNCTION, holds_vectors
from deephash_pipeline.hamming.replacing import refuse_exchanged
from deephash_pipeline.hamming.texts import stored_labels
from deephash_pipeline.provenance import content_digest
from deephash_pipeline.retrieval.codes import check_count, code_words

WHOLE_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
"""As an integer id is written, which may have so many digits; ``007`` is not 7."""
NEW_ID_BITS = 53
"""JavaScript knows whole numbers of so many."""

logger = logging.getLogger(__name__)


class VectorIndex(CodedItems):
    """A hash function, the index of its codes, and the vectors in few bytes; in a folder, or in memory.

    A search finds the nearest codes, and brings so many of them into the order of the cosine as the recall takes that
    was asked for. Where no vectors are kept, the real-valued outputs of the query bring them into order. Directions
    alone are kept: inner products and Euclidean distances want lengths too.

    Args:
        coder: what makes the codes.
        description: description of the index, and what was measured.
        index: index of codes and vectors.
        folder: directory of the index; None for one in memory.

    Attributes:
        has_warned: whether queries were of another kind than the vectors, see `kind`.

    Example:
        >>> vectors = np.random.default_rng(0).normal(size=(500, 64)).astype(np.float32)
        >>> index = VectorIndex.build(None, vectors, code_length=64)
        >>> answers = index.search(vectors[7:9], 3)
        >>> answers.ids[:, 0].tolist(), answers.scores[:, 0].round(2).tolist()
        ([7, 8], [1.0, 1.0])
    """

    index: HammingIndex
    noun = "vector"
    takes = frozenset({"recall", "where"})

    def __init__(self, coder: Coder, description: Description, index: HammingIndex, folder: Path | None) -> None:
        super().__init__(index, folder)
        self.coder, self.description, self.width = coder, description, description.width
        # A search asks each time.
        self._expected = lru_cache(description.measured.expected)
        self.has_warned = False

    @classmethod
    @own_settings()
    def build(
        cls,
        folder: str | Path | None,
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
        """Make an index, and open it.

        Args:
            folder: directory of the index; None for one in memory.
            vectors: real numbers (n, width), see `array_of`; a path of `open_vectors`, or a source.
            ids: 64-bit integers, strings or UUIDs, one for each; the numbers of their rows by default.
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
        source = source_of(vectors, metadata)
        # scikit-learn takes seconds; a search needs none.
        from deephash_pipeline.embeddings.building import BuildSettings, build_index, built_in_memory  # noqa: PLC0415

        ids = getattr(source, "ids", None) if ids is None else ids
        settings = BuildSettings(method, code_length, rescore, recall, seed, anew)
        asked = None if queries is None else source_of(queries, None)
        if folder is None:
            return cls(*built_in_memory(source, settings, ids, labels, asked), None)
        build_index(Path(folder), source, settings, ids, labels, asked)
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
        coder, description = load_hash_function(path)
        index = HammingIndex.open(path, read_only)
        try:
            if index.made_by != content_digest(path / HASH_FUNCTION):
                raise InputError(f"{path / HASH_FUNCTION} is not what made the codes of this index: put that one back")
            return cls(coder, description, index, path)
        except BaseException:
            index.close()
            raise

    @property
    def maker(self) -> str:
        """Method, and how vectors are stored."""
        return f"{self.description.method}, rescored by {self.description.rescore}"

    def warm_up(self) -> None:
        """Search once: the first time takes seconds."""
        self.search(np.ones(self.width), 1)

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

    def get(self, name: ItemId) -> VectorItem:
        """One item: its vector as it is kept, and its metadata.

        Raises:
            InputError: there is none of this id.
        """
        item = self.index.get(name)
        vector = self.index.features_of([item.id])[0] if self.index.features else None
        return VectorItem(item.id, vector, item.metadata)

    @own_settings()
    def encode(self, vectors: Any) -> NDArray[np.uint8]:
        """Packed codes of vectors, uint8 (n, ceil(code_length / 8))."""
        return self.coder.codes(self._unit(vectors, "vectors"))

    @own_settings()
    def add(
        self,
        vectors: Any,
        ids: GivenIds | None = None,
        metadata: Mapping[str, Sequence[Any]] | None = None,
        *,
        labels: Sequence[Any] | None = None,
        replace: bool = False,
    ) -> None:
        """Add vectors; when this returns, they are stored for good and found by the next search.

        Args:
            vectors: real numbers (n, width).
            ids: one for each, of the kind that the index has; by default their rows are numbered on, as in `build`.
            metadata: values by column, one for each.
            labels: names of classes, one for each.
            replace: True if a vector of the same id gives way; otherwise it is an error.

        Raises:
            InputError: see `build`, and `HammingIndex.add`; nothing is added then.
        """
        unit = self._unit(vectors, "vectors")
        if labels is not None:
            metadata = {**(metadata or {}), "label": stored_labels(labels)}
        kept = unit if self.index.features else None
        self.index.add(ids, self.coder.codes(unit), metadata, features=kept, replace=replace)

    def update(self, ids: GivenIds, metadata: Mapping[str, Sequence[Any]]) -> None:
        """Change metadata of vectors; see `HammingIndex.update`."""
        self.index.update(ids, metadata)

    def expected(self, k: int, recall: float | None = None, conditions: bool = False) -> Expected:
        """How many candidates for each of k answers a search rescores, and the recall that was measured with them.

        Args:
            k: number of vectors that are to be found.
            recall: wanted share of the exact answers; by default what the index was built for.
            conditions: True under conditions, with which nothing was measured.
        """
        if recall is not None:
            check_recall(recall)
        return self._expected(k, recall, conditions)

    @cached_property
    def kind(self) -> Kind | None:
        """What its vectors have in common, as they were when first asked for.

        None where that is not known, or recall was measured with queries that were given.
        """
        return None if self.description.measured.given else Kind.of(self.index)

    @own_settings()
    def search(self, queries: Any, k: int, where: Where | None = None, recall: float | None = None) -> CosineAnswers:
        """Find the k nearest of each query.

        Args:
            queries: real numbers (queries, width) or (width,).
            k: number of items, at least 1; fewer are found if fewer items match.
            where: conditions on metadata, see `HammingIndex.search`.
            recall: recall that is wanted, see `expected`.

        Returns:
            Ids and cosines, the highest first; None for cosines where vectors are not kept.

        Raises:
            InputError: an argument has another form.
        """
        unit = self._unit(queries, "queries")
        return self._searched(unit, self.coder.codes(unit), check_count(k, "k"), where, recall)

    @own_settings()
    def search_by_id(
        self, name: ItemId, k: int, where: Where | None = None, recall: float | None = None
    ) -> CosineAnswers:
        """Find the k nearest of an item of the index, without itself; see `search`.

        Where no vectors are kept, by the distance of its code.
        """
        k = check_count(k, "k")
        item = self.index.get(name)
        if not self.index.features:
            found = self.index.search_by_id(name, k, where)
            return CosineAnswers(found.ids, found.distances)
        near = self._searched(self.index.features_of([name]), item.code[np.newaxis], k + 1, where, recall)
        return near.without(item.id, k)

    def _searched(
        self, unit: NDArray[np.float32], codes: NDArray[np.uint8], k: int, where: Where | None, recall: float | None
    ) -> CosineAnswers:
        if (unlike := self.kind is not None and self.kind.is_another(unit)) and not self.has_warned:
            self.has_warned = True
            logger.warning("%s: %s", self.folder or "vectors", OTHER_KIND)
        oversampling = UNLIKE if unlike else self.expected(k, recall, bool(where)).oversampling
        rerank = reranking_of(self.index, self.coder, unit, k * oversampling)
        found = self.index.found(code_words(codes), k, where, rerank)
        if not self.index.features:
            return CosineAnswers(found.ids, found.distances)
        assert found.scores is not None
        # Of vectors of length 1 half the squared distance is 1 - cosine.
        return CosineAnswers(found.ids, found.distances, 1 - found.scores / np.float32(2))

    def _unit(self, vectors: Any, name: str) -> NDArray[np.float32]:
        given = reals(array_of(vectors, name))
        if given.shape[1] != self.width:
            raise InputError(f"{name} have {given.shape[1]} numbers, this index has {self.width}")
        return unit_rows(given, name)
