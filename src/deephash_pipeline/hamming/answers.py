"""Results of a search."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

ItemId = int | str
Ids = NDArray[Any]
"""int64, or object holding `str`, after the kind of id that the index has."""
GivenIds = Sequence[ItemId] | NDArray[Any]
"""Ids as a user gives them."""


@dataclass(frozen=True)
class Item:
    """One item of an index.

    Attributes:
        id: id that it was added as.
        code: packed bits, uint8 (ceil(code_length / 8),).
        metadata: values by column; those it has no value in are left out.

    Example:
        >>> Item("cat.png", np.array([240], dtype=np.uint8), {"label": "cat"}).metadata
        {'label': 'cat'}
    """

    id: ItemId
    code: NDArray[np.uint8]
    metadata: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Answers:
    """The nearest items of every query, nearest first, the one added first before others as near.

    Attributes:
        ids: (queries, answers), int64 or object holding `str`; there are min(k, items that match) answers.
        distances: Hamming distances, int32 (queries, answers).
        scores: numbers that a re-ranking ordered by, float32 (queries, answers), smaller is nearer; None without
            re-ranking. Those of an index of vectors are cosines, see `embeddings.CosineAnswers`.

    Example:
        >>> answers = Answers(np.array([[7, 8]]), np.array([[0, 2]], dtype=np.int32))
        >>> len(answers), answers[0]
        (1, [(7, 0), (8, 2)])
    """

    ids: Ids
    distances: NDArray[np.int32]
    scores: NDArray[np.float32] | None = None

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.ids)

    def __getitem__(self, query: int) -> list[tuple[ItemId, int]]:
        """Id and distance of each answer to one query."""
        return list(zip(self.ids[query].tolist(), self.distances[query].tolist(), strict=True))

    def at(self, places: Sequence[int] | NDArray[np.int64]) -> Self:
        """The answers to each query at some places, with their scores."""
        scores = None if self.scores is None else self.scores[:, places]
        return type(self)(self.ids[:, places], self.distances[:, places], scores)

    def without(self, item_id: ItemId, k: int) -> Self:
        """The first k answers to one query but for an item, which is the nearest to itself.

        Example:
            >>> Answers(np.array([[7, 8]]), np.array([[0, 2]], dtype=np.int32)).without(7, k=1)[0]
            [(8, 2)]
        """
        return self.at(np.flatnonzero(self.ids[0] != item_id)[:k])


@dataclass(frozen=True, eq=False)
class RangeAnswers:
    """All items within a radius of every query, in the order of (distance, insertion).

    Attributes:
        starts: int64 (queries + 1,): the answers to query `q` are ids[starts[q] : starts[q + 1]].
        ids: (answers to all queries,), int64 or object holding `str`.
        distances: int32, likewise.

    Example:
        >>> answers = RangeAnswers(np.array([0, 2, 2]), np.array([7, 8]), np.array([0, 2], dtype=np.int32))
        >>> list(answers)
        [[(7, 0), (8, 2)], []]
    """

    starts: NDArray[np.int64]
    ids: Ids
    distances: NDArray[np.int32]

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.starts) - 1

    def __getitem__(self, query: int) -> list[tuple[ItemId, int]]:
        """Id and distance of each answer to one query."""
        if not -len(self) <= query < len(self):
            raise IndexError(query)
        part = slice(self.starts[query % len(self)], self.starts[query % len(self) + 1])
        return list(zip(self.ids[part].tolist(), self.distances[part].tolist(), strict=True))

    def __iter__(self) -> Iterator[list[tuple[ItemId, int]]]:
        """The answers to each query."""
        return (self[query] for query in range(len(self)))
