"""Answers of an index of vectors: ids and cosines."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.answers import Answers, ItemId


@dataclass(frozen=True, eq=False)
class CosineAnswers(Answers):
    """The nearest vectors of every query, nearest first.

    Attributes:
        ids: (queries, answers), int64 or object holding `str`; there are min(k, vectors that match) answers.
        distances: Hamming distances of the codes, int32 (queries, answers).
        scores: cosines, float32 (queries, answers), the highest first; None where no vectors are kept.

    Example:
        >>> ids, bits = np.array([[7, 8]]), np.array([[3, 2]], dtype=np.int32)
        >>> answers = CosineAnswers(ids, bits, np.array([[1.0, 0.5]], dtype=np.float32))
        >>> for of_query in answers:
        ...     for name, cosine in of_query:
        ...         print(name, cosine)
        7 1.0
        8 0.5
    """

    def __getitem__(self, query: int) -> list[tuple[ItemId, Any]]:
        """Id and cosine of each answer to one query; None for the cosine where no vectors are kept."""
        ids = self.ids[query].tolist()
        return list(zip(ids, [None] * len(ids) if self.scores is None else self.scores[query].tolist(), strict=True))

    def __iter__(self) -> Iterator[list[tuple[ItemId, Any]]]:
        """The answers to each query."""
        return (self[query] for query in range(len(self)))


@dataclass(frozen=True, eq=False)
class VectorItem:
    """One item of an index of vectors.

    Attributes:
        id: id that it was added as.
        vector: direction as it is kept, of length 1, float32 (width,); None where no vectors are kept.
        metadata: values by column; those it has no value in are left out.

    Example:
        >>> VectorItem("a", np.ones(1, dtype=np.float32), {"year": 2020}).metadata
        {'year': 2020}
    """

    id: ItemId
    vector: NDArray[np.float32] | None
    metadata: dict[str, Any]
