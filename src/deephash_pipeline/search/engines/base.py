"""What all engines have in common: questions whose answers follow from those to others."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.search import Answers, Item, ItemId, Searchable
from deephash_pipeline.search.checks import checked_count
from deephash_pipeline.search.filters import Where


class EngineIndex(Searchable):
    """Codes that another engine has, with the questions of a `HammingIndex`.

    Attributes:
        place: what messages call it, without a password.
    """

    place: str
    approximate = False

    @property
    @abstractmethod
    def text_ids(self) -> bool:
        """Whether ids are strings; otherwise they are integers."""

    @abstractmethod
    def found(self, ids: Sequence[ItemId]) -> dict[ItemId, Item]:
        """Those of some items that are there."""

    def __contains__(self, item_id: object) -> bool:
        """Whether there is an item of this id."""
        return isinstance(item_id, str if self.text_ids else int) and item_id in self.found([item_id])

    def search_by_id(self, item_id: ItemId, k: int, where: Where | None = None) -> Answers:
        """Find the k items nearest to one of the index, without that one; see `HammingIndex.search_by_id`.

        Raises:
            InputError: there is no such item, or the engine does not answer.
        """
        found = self.search(self.get(item_id).code[np.newaxis], checked_count(k, "k") + 1, where)
        others = np.flatnonzero(found.ids[0] != item_id)[:k]
        return Answers(found.ids[:, others], found.distances[:, others])

    def get(self, item_id: ItemId) -> Item:
        """One item: code and metadata.

        Raises:
            InputError: there is no such item.
        """
        return self.items([item_id])[0]

    def items(self, ids: Sequence[ItemId] | NDArray[Any]) -> list[Item]:
        """Codes and metadata of some items.

        Raises:
            InputError: one of them is not there.
        """
        wanted: list[ItemId] = [item_id.item() if isinstance(item_id, np.generic) else item_id for item_id in ids]
        kind = str if self.text_ids else int
        there = self.found([item_id for item_id in wanted if isinstance(item_id, kind)])
        for item_id in wanted:
            if item_id not in there:
                raise InputError(f"id {item_id!r} is not in {self.place}; give ids of items that are.")
        return [there[item_id] for item_id in wanted]

    def info(self) -> dict[str, Any]:
        """What there is."""
        return {"items": len(self), "code_length": self.code_length, "columns": self.columns, "place": self.place}
