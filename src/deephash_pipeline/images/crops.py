"""Windows cut out of images: at random or in the middle for a smaller network, and the ten crops of an image."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.common.devices import to_device
from deephash_pipeline.common.randomness import derive_seed, uniform_numbers

KEPT_SHARE = 11 / 12
"""Side of a crop by that of the image: 44 of 48 pixels."""

VIEWS = 11
"""The image as it is, and its ten crops."""


def centre_crop(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Cut the middle out of images (b, c, h, w), half a pixel up and left where it lies between two.

    Example:
        >>> centre_crop(torch.zeros(2, 3, 256, 256), (227, 227)).shape
        torch.Size([2, 3, 227, 227])
    """
    top, left = ((side - kept) // 2 for side, kept in zip(images.shape[2:], size, strict=True))
    return images[:, :, top : top + size[0], left : left + size[1]]


def random_crop(images: Tensor, size: tuple[int, int], seed: int, first: int = 0) -> Tensor:
    """Cut a window out of every image, all places equally likely.

    Args:
        images: shape (b, c, h, w), of any type.
        size: height and width of a window, at most those of the images.
        seed: of the places; that of an image depends on it and on the number of the image.
        first: number of the first image, so that a batch in pieces is cut like the whole.

    Returns:
        Windows of shape (b, c, *size); where that is the size of the images, `images` itself.

    Example:
        >>> random_crop(torch.zeros(2, 3, 256, 256), (227, 227), seed=0).shape
        torch.Size([2, 3, 227, 227])
    """
    if images.shape[2:] == size:
        return images
    draws = uniform_numbers(derive_seed(seed, "crop"), torch.arange(first, first + len(images)), draws=2).T
    places = (side - kept + 1 for side, kept in zip(images.shape[2:], size, strict=True))
    top, left = (torch.floor(count * draw).long() for count, draw in zip(places, draws, strict=True))
    return _windows(images, top, left, size)


def eleven_views(images: Tensor, views: NDArray[np.int64]) -> Tensor:
    """Show every image in one of its views: 28,709 training images of Kaggle-Face become the paper's 315,799.

    Args:
        images: shape (b, c, h, w), of any type.
        views: int64 of shape (b,). 0 is the image as it is; 1 to 5 its corners (top left, top right, bottom left,
            bottom right) and its centre, `KEPT_SHARE` of its side, resized bilinearly to the whole; 6 to 10 these,
            mirrored left to right.

    Returns:
        float32 of shape (b, c, h, w).

    Example:
        >>> image = torch.rand(1, 3, 48, 48)
        >>> eleven_views(image.expand(VIEWS, -1, -1, -1), np.arange(VIEWS)).shape
        torch.Size([11, 3, 48, 48])
    """
    images = images.float()
    height, width = images.shape[2:]
    size = round(KEPT_SHARE * height), round(KEPT_SHARE * width)
    down, right = height - size[0], width - size[1]
    places = torch.tensor([[0, 0], [0, right], [down, 0], [down, right], [down // 2, right // 2]])
    view = torch.from_numpy(views)
    top, left = places[(view - 1) % len(places)].T
    windows = _windows(images, top, left, size)
    mirrored, cropped = (to_device(chosen, images.device)[:, None, None, None] for chosen in (view > 5, view > 0))
    windows = torch.where(mirrored, windows.flip(3), windows)
    resized = functional.interpolate(windows, (height, width), mode="bilinear", align_corners=False)
    return torch.where(cropped, resized, images)


def _windows(images: Tensor, top: Tensor, left: Tensor, size: tuple[int, int]) -> Tensor:
    """Cut out of each image a window of `size` whose upper left corner lies at top (b,) and left (b,)."""
    rows, columns = (
        to_device(corner[:, None] + torch.arange(side), images.device)
        for corner, side in zip((top, left), size, strict=True)
    )
    image, channel = (torch.arange(count, device=images.device) for count in images.shape[:2])
    return images[image[:, None, None, None], channel[:, None, None], rows[:, None, :, None], columns[:, None, None, :]]
