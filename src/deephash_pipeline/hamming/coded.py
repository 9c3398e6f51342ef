"""Items that are found by their codes, with what makes the codes: what indexes of images and of vectors share."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming.answers import Answers, Ids, ItemId
from deephash_pipeline.hamming.conditions import Where
from deephash_pipeline.hamming.index import HammingIndex
from deephash_pipeline.hamming.searchable import Closing, Searchable
from deephash_pipeline.hamming.texts import Texts, stored_labels, unknown


class CodedItems(Closing, ABC):
    """Items of an index, some of which have labels.

    Args:
        index: index of their codes; one in another engine is only read.
        folder: directory of the index; None for one in memory.

    Attributes:
        width: numbers of an item that is a vector, 0 where items are images.
    """

    width: int = 0
    noun: ClassVar[str] = "image"
    """One of its items, in messages."""
    takes: ClassVar[frozenset[str]] = frozenset()
    """Fields of a question that are for some indexes alone, and which this one answers."""

    def __init__(self, index: Searchable, folder: Path | None) -> None:
        self.index = index
        self.folder = None if folder is None else folder.absolute()
        self._seen_labels: set[str] = set()

    def close(self) -> None:
        """Let others write."""
        self.index.close()

    def __len__(self) -> int:
        """Number of items."""
        return len(self.index)

    @property
    def is_replaced(self) -> bool:
        """Whether its folder has another index by now."""
        return isinstance(self.index, HammingIndex) and self.index.is_replaced

    def _own(self) -> HammingIndex:
        """The index itself, where its items may be changed."""
        if not isinstance(self.index, HammingIndex):
            raise InputError("codes in another engine are read: change the index they are of, and export it again")
        return self.index

    @property
    @abstractmethod
    def maker(self) -> str:
        """What makes the codes, in a few words."""

    @abstractmethod
    def encode(self, queries: Any) -> NDArray[np.uint8]:
        """Packed codes of images or vectors, uint8 (n, ceil(code_length / 8))."""

    @abstractmethod
    def warm_up(self) -> None:
        """Encode and search once: the first time takes seconds."""

    @property
    def image_shape(self) -> tuple[int, int, int] | None:
        """Shape of images as they are encoded; None of vectors."""
        return None

    def told(self, metadata: Mapping[str, Any]) -> dict[str, Any] | None:
        """Metadata that an answer has, without bytes, which JSON lacks; None where it has none."""
        return {column: value for column, value in metadata.items() if not isinstance(value, bytes)}

    def require(self, name: str, fields: Mapping[str, bool]) -> None:
        """Refuse fields of a question that are given and not for this index.

        Args:
            name: name of the index in messages.
            fields: whether each is given.

        Raises:
            InputError: one is, and this index does not take it.
        """
        for field, is_given in fields.items():
            if is_given and field not in self.takes:
                others = "pictures" if self.width else "vectors"
                raise InputError(f"{field}: it is for {others}, {name} has {self.noun}s")

    @abstractmethod
    def search(self, queries: Any, k: int, where: Where | None = None) -> Answers:
        """Find the k nearest of each image or vector."""

    def remove(self, ids: Any, missing_ok: bool = False) -> int:
        """Remove items; return how many. See `HammingIndex.remove`."""
        return self._own().remove(ids, missing_ok=missing_ok)

    def path_of(self, metadata: dict[str, Any]) -> Path | None:
        """Where the picture of an item is, None if it has none."""
        path = metadata.get("path")
        return None if path is None else (self.folder or Path()) / str(path)

    def id_of(self, text: str) -> ItemId:
        """The id that is written as a text."""
        return text

    def new_id(self) -> ItemId:
        """An id for an item that comes without one."""
        return f"added/{uuid4().hex}"

    def search_by_id(self, name: ItemId, k: int, where: Where | None = None) -> Answers:
        """Find the k nearest of an item of the index, without itself."""
        return self.index.search_by_id(name, k, where)

    def compact(self) -> None:
        """Bring all codes into one file with a checksum; see `HammingIndex.compact`."""
        self._own().compact()

    def labels(self) -> list[str]:
        """The labels there are, ascending; also of images removed lately."""
        return list(dict.fromkeys(map(str, self.index.values("label")))) if "label" in self.index.columns else []

    def labelled(self, labels: Texts) -> Where:
        """The condition that an item has one of some labels, in whatever form of Unicode.

        Raises:
            InputError: no item has one of them; the message names the nearest spelling.
        """
        wanted: list[Any] = []
        for label in dict.fromkeys(stored_labels(labels)):
            values = [label] if label in self._seen_labels else self._stored(label)
            if not values:
                raise unknown(label, self.labels(), self.noun)
            # Text that was there is looked for no more: it may be every request's.
            if values == [label]:
                self._seen_labels.add(label)
            wanted += values
        return {"label": wanted}

    def _stored(self, label: str) -> list[Any]:
        """The values that items have for a label: text, or numbers that are written so, as of a Parquet file."""
        index = self.index
        if "label" not in index.columns:
            return []
        kinds = index.kinds("label") if isinstance(index, HammingIndex) else ["text"]
        values: list[Any] = [label] if "text" in kinds else []
        if "numbers" in kinds:
            every = index.values("label", most=10**9)
            values += [value for value in every if not isinstance(value, str) and str(value) == label]
        anything = np.zeros((1, -(-index.code_length // 8)), dtype=np.uint8)
        return values if values and index.search(anything, 1, {"label": values}).ids.size else []

    def ids(self) -> Ids:
        """All ids in the order of insertion, int64 or object holding `str`, (items,)."""
        return self._own().ids()

    def __iter__(self) -> Iterator[ItemId]:
        """Ids in the order of insertion."""
        return iter(self._own())
