"""A second look at two files of nearly one picture, at the resolution of the smaller: None is left in doubt."""

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.decode import BrokenImageError, decode_image
from deephash_pipeline.photographs.duplicates.alignment import aligned, resolution
from deephash_pipeline.photographs.duplicates.groups import Photo
from deephash_pipeline.photographs.duplicates.left_over import GREY, left_over
from deephash_pipeline.photographs.duplicates.small_picture import scaled

NOT_READ_AGAIN = "it cannot be read again"
LARGEST_SIDE, LARGEST_AROUND = 1024, 3072
"""In pixels, of the copy and of a picture of which it may be a part."""
SAME_FRAME = 0.05
"""Share of the sides by which the corners of small pictures of one frame may be apart."""


def difference(best: Photo, other: Photo, placement: NDArray[np.float64]) -> str | None:
    """Say what tells a file from an edit of the one to keep; None if every block of it is explained.

    Args:
        best: the file to keep.
        other: a file of the same picture, as far as 64 pixels tell.
        placement: affine map float64 (2, 3) from the other to the one to keep, of x and y as shares of their sides.
    """
    if not all((best.width, best.height, other.width, other.height)):
        return NOT_READ_AGAIN
    size = scaled((other.width, other.height), min(1.0, LARGEST_SIDE / max(other.width, other.height)))
    pixels = resolution(placement, size[::-1], (best.height, best.width))
    share = min(1.0, 1 / pixels, LARGEST_AROUND / max(best.width, best.height))
    around = scaled((best.width, best.height), share)
    try:
        kept, copy = (
            decode_image(photo.path, (height, width), 3).astype(np.float32)
            for photo, (width, height) in ((best, around), (other, size))
        )
    except (BrokenImageError, InputError):
        return NOT_READ_AGAIN
    frame = _whole_frame(placement)
    if frame is not None and left_over(kept, copy, frame) is None:
        return None
    of_copy, of_kept = (np.einsum("chw,c->hw", picture, GREY) for picture in (copy, kept))
    return left_over(kept, copy, aligned(of_copy, of_kept, placement))


def _whole_frame(placement: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The map of a whole picture, turned or mirrored, that is near; None for a part."""
    frame = np.rint(placement)
    return frame if np.abs(placement - frame).sum(axis=1).max() < SAME_FRAME else None
