"""Images that are listed but not yet decoded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError

Channels = Literal[1, 3]


def checked_size(image_size: Sequence[int]) -> tuple[int, int]:
    """Take height and width as a user gives them.

    Raises:
        InputError: they are not two positive numbers.

    Example:
        >>> checked_size([64, 48])
        (64, 48)
    """
    sides = tuple(image_size) if isinstance(image_size, Sequence) else ()
    if len(sides) != 2 or not all(isinstance(side, int) and side > 0 for side in sides):
        raise InputError(f"image_size is {image_size!r}: give height and width, such as (64, 64)")
    return sides[0], sides[1]


@dataclass(frozen=True)
class ImageFiles:
    """Files in the place of an array of images: rows are counted and chosen as of that array, and nothing is read.

    Attributes:
        root: folder of the raw files.
        names: paths below `root`, one per row.
        image_size: height and width to decode to, in pixels.
        channels: 1 for grey, 3 for colour.

    Example:
        >>> ImageFiles(Path("raw"), ["a.png", "b.png", "c.png"], 32, 3)[:2].shape
        (2, 3, 32, 32)
    """

    root: Path
    names: list[str]
    image_size: int
    channels: Channels

    dtype: ClassVar[np.dtype[np.uint8]] = np.dtype(np.uint8)
    ndim: ClassVar[int] = 4

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape (n, c, h, w) of the array that decoding makes."""
        return len(self.names), self.channels, self.image_size, self.image_size

    def of(self, names: list[str]) -> "ImageFiles":
        """Give other files of the same folder."""
        return replace(self, names=names)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> "ImageFiles":
        names = self.names[rows] if isinstance(rows, slice) else [self.names[row] for row in rows]
        return self.of(names)
