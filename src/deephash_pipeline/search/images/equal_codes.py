"""How many images of one build have equal codes: it tells pictures that a hasher knows from others."""

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hashers import HasherDescription

FEWEST = 100
MOST = 10_000
# Measured with the hashers of this package, see docs/search-service.md: between their own pictures and all others.
SAME_CODE = 0.2
EQUAL_CODES = 0.4
TRAINED_TO_BE_EQUAL = ("deephash",)


class EqualCodes:
    """Counts equal codes among the first 10,000.

    Example:
        >>> codes = EqualCodes()
        >>> codes.count(np.zeros((300, 6), dtype=np.uint8))
        >>> codes.same, codes.equal
        (1.0, 1.0)
    """

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()

    def count(self, codes: NDArray[np.uint8]) -> None:
        """Count packed codes, uint8 (n, bytes)."""
        room = max(0, MOST - self._counts.total())
        self._counts.update(code.tobytes() for code in codes[:room])

    @property
    def same(self) -> float:
        """Share of the images that have the commonest code."""
        return max(self._counts.values(), default=0) / max(1, self._counts.total())

    @property
    def equal(self) -> float:
        """Share of the images whose code another image has too."""
        return sum(count for count in self._counts.values() if count > 1) / max(1, self._counts.total())

    def warning(self, hasher: HasherDescription) -> str | None:
        """Say so if the pictures seem to be nothing like those that the hasher was trained on."""
        if self._counts.total() < FEWEST:
            return None
        if self.same > SAME_CODE:
            found = f"{self.same:.0%} of the pictures have one and the same code"
        elif hasher.method in TRAINED_TO_BE_EQUAL and self.equal < EQUAL_CODES:
            found = f"{self.equal:.0%} of the pictures share a code with another, fewer than of a class it knows"
        else:
            return None
        return (
            f"{found}: the hasher was trained on {hasher.benchmark} and may find little in other pictures; "
            "train one on pictures like these"
        )
