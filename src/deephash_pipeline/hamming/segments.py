"""Segments: the immutable parts of an index."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hamming.answers import Ids
from deephash_pipeline.hamming.ids import MISSING, IdColumn, id_column
from deephash_pipeline.hamming.parts import CodeGroups, group_codes

# Up to so many positions are found by halving: numpy would first convert all there are to the type of those.
FEW = 64


@dataclass(frozen=True, eq=False)
class Contents:
    """Items to make a segment of, in the order of their insertion.

    Attributes:
        words: codes, uint64 (words, items).
        ids: int64 (items,) or object holding `str`.
        positions: int64 (items,), ascending: the item's number in the order of insertion, never used twice.
        features: features, as their `FeatureForm` stores them, (items, columns), or None for an index without.
    """

    words: NDArray[np.uint64]
    ids: Ids
    positions: NDArray[np.int64]
    features: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class Segment:
    """Items that do not change any more, ready to be searched.

    Attributes:
        name: name of its file.
        groups: codes of the items.
        ids: ids of the items.
        positions: int64 (items,), see `Contents`; kept as uint32 offsets, or not at all if they are consecutive.
        first_position: position that offsets are relative to.
        features: features, as in `Contents`, mapped into memory, or None.
        digest: digest of the file's bytes, hexadecimal.
    """

    name: str
    groups: CodeGroups
    ids: IdColumn
    offsets: NDArray[Any] | None
    first_position: int
    features: NDArray[Any] | None
    digest: str = ""

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.ids)

    def positions_of(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Positions of some rows."""
        offsets = rows if self.offsets is None else self.offsets[rows]
        return self.first_position + offsets.astype(np.int64)

    def at_positions(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Flags of its rows, of those of all positions."""
        if self.offsets is None:
            return flags[self.first_position : self.first_position + self.size]
        return np.take(flags[self.first_position :], self.offsets)

    def rows_of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows at some positions, MISSING where there is none."""
        wanted = np.asarray(positions, dtype=np.int64) - self.first_position
        if self.offsets is None:
            return np.where((wanted >= 0) & (wanted < self.size), wanted, MISSING)
        if len(wanted) <= FEW:
            places = np.array([bisect_left(self.offsets, value) for value in wanted.tolist()], dtype=np.int64)
        else:
            places = np.searchsorted(self.offsets, wanted)
        rows = np.minimum(places, self.size - 1)
        return np.where(self.offsets[rows] == wanted, rows, MISSING)

    def contents_of(self, rows: NDArray[np.int64], with_features: bool = True) -> Contents:
        """Some of its items, rows ascending, to make another segment of."""
        features = self.features[rows] if with_features and self.features is not None else None
        return Contents(self.groups.words_of(rows), self.ids.take(rows), self.positions_of(rows), features)


def joined(contents: Iterable[Contents]) -> Contents:
    """Several contents, one after the other."""
    several = list(contents)
    features = [part.features for part in several if part.features is not None]
    return Contents(
        np.concatenate([part.words for part in several], axis=1),
        np.concatenate([part.ids for part in several]),
        np.concatenate([part.positions for part in several]),
        np.concatenate(features) if features else None,
    )


def segment_of(contents: Contents, name: str) -> Segment:
    """Make a segment, in memory, of at least one item."""
    positions = contents.positions
    offsets: NDArray[Any] | None = positions - positions[0]
    if positions[-1] - positions[0] == len(positions) - 1:
        offsets = None
    elif positions[-1] - positions[0] < 2**32:
        offsets = (positions - positions[0]).astype(np.uint32)
    groups = group_codes(np.ascontiguousarray(contents.words))
    return Segment(name, groups, id_column(contents.ids), offsets, int(positions[0]), contents.features)
