"""Interface of an index of codes, wherever its codes are stored."""

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.answers import Answers, GivenIds, Item, ItemId
from deephash_pipeline.hamming.conditions import Where


class Closing:
    """What is closed at the end of a block."""

    def close(self) -> None:
        """Give back what it uses."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class Searchable(Protocol):
    """An index that is searched: a `HammingIndex`, or codes in another engine.

    Attributes:
        approximate: True if near items may be missing from its answers.

    Example:
        >>> from deephash_pipeline.hamming import HammingIndex
        >>> index: Searchable = HammingIndex(8)
        >>> index.code_length, index.approximate, len(index)
        (8, False, 0)
    """

    approximate: bool

    @property
    def code_length(self) -> int:
        """Bits per code."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns of metadata."""

    @property
    def made_by(self) -> str | None:
        """The digest of what makes its codes, see `HammingIndex.mark`; None where that is not known."""

    def __len__(self) -> int:
        """Number of items."""

    def __contains__(self, item_id: object) -> bool:
        """Whether there is an item of this id."""

    def search(self, codes: NDArray[np.uint8], k: int, where: Where | None = None) -> Answers:
        """The k nearest items of every query, in the order of (distance, insertion)."""

    def search_by_id(self, item_id: ItemId, k: int, where: Where | None = None) -> Answers:
        """The k items nearest to one of the index, without that one."""

    def get(self, item_id: ItemId) -> Item:
        """One item: code and metadata.

        Raises:
            InputError: if there is no such item.
        """
        return self.items([item_id])[0]

    def items(self, ids: GivenIds) -> list[Item]:
        """Codes and metadata of some items."""

    def sample(self, count: int, seed: int) -> list[ItemId]:
        """Ids of some items drawn at random."""

    def values(self, column: str, most: int = 1000) -> list[Any]:
        """Distinct values of a column of metadata, ascending."""

    def info(self) -> dict[str, Any]:
        """What there is."""

    def close(self) -> None:
        """Give back what it uses."""
