"""Which rows of a training set are similar: those of one class, or those that share a label."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.rows import Ints
from deephash_pipeline.retrieval.labels import share_a_label


class LabelSets(NamedTuple):
    """The different sets of labels of a training set, and which row has which.

    Attributes:
        of_row: int64 (n,).
        similar: bool (sets, sets), whether two sets meet; a set is similar to itself only if it is not empty.

    Example:
        >>> sets = LabelSets.of(np.array([[1, 0], [1, 1], [1, 0]]))
        >>> sets.of_row, sets.similar.tolist()
        (array([0, 1, 0]), [[True, True], [True, True]])
    """

    of_row: Ints
    similar: NDArray[np.bool_]

    @classmethod
    def of(cls, labels: Ints) -> "LabelSets":
        """Find those of multi-hot labels (n, classes)."""
        sets, of_row = np.unique(labels, axis=0, return_inverse=True)
        return cls(of_row.reshape(-1), share_a_label(sets, sets))


class PartnerSampler:
    """Draws partners of rows that have several labels: uniform over all rows that are similar, or that are not.

    Rows are sorted by their set of labels. The partners of a kind that a set has are the rows of some of the sets, and
    a number below their total finds one by its place in the running total.

    Args:
        labels: multi-hot (n, classes).

    Raises:
        InputError: no two rows are similar, or no two are not.

    Example:
        >>> sampler = PartnerSampler(np.array([[1, 0], [1, 1], [0, 1], [1, 0]]))
        >>> sampler.partners_of_rows()
        array([[1, 0, 2, 1],
               [3, 4, 2, 3]])
        >>> sampler.draw(np.array([0]), similar=False, generator=np.random.default_rng(0))
        array([2])
    """

    def __init__(self, labels: Ints) -> None:
        sets = LabelSets.of(labels)
        self.set_of_row = sets.of_row
        sizes = np.bincount(sets.of_row)
        self._rows_by_set = np.argsort(sets.of_row, kind="stable")
        self._starts = np.cumsum(sizes) - sizes
        # [kind, set, other set]: rows of the other sets up to this one that are of the kind; kind 1 is similar.
        self._totals = np.cumsum(np.stack([~sets.similar, sets.similar]) * sizes, axis=2)
        dissimilar, similar = self.partners_of_rows()
        # A row with a label is similar to itself, which makes no pair.
        if not dissimilar.any() or similar.max() < 2:
            raise InputError("y makes all pairs of rows similar, or none: give images that share labels and others")

    def partners_of_rows(self) -> Ints:
        """How many partners of each kind every row has, (2, n): dissimilar ones, and similar ones with itself."""
        return np.asarray(self._totals[:, self.set_of_row, -1])

    def draw(self, first: Ints, similar: bool, generator: np.random.Generator) -> Ints:
        """Draw a partner of one kind for each of some rows (pairs,), which must have one; a row may be its own."""
        totals = self._totals[int(similar)]
        of_first = self.set_of_row[first]
        number = generator.integers(totals[of_first, -1])
        found = np.empty(len(first), dtype=np.int64)
        for start in range(0, len(first), ROWS_OF_SIMILARITY):
            rows = slice(start, start + ROWS_OF_SIMILARITY)
            below = totals[of_first[rows]]
            other = np.count_nonzero(below <= number[rows, np.newaxis], axis=1)
            before = np.where(other > 0, np.take_along_axis(below, np.maximum(other - 1, 0)[:, np.newaxis], 1)[:, 0], 0)
            found[rows] = self._rows_by_set[self._starts[other] + number[rows] - before]
        return found


ROWS_OF_SIMILARITY = 4096
