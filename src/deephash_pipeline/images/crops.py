"""Windows cut out of images, at random or in the middle, for a smaller network."""

import torch
from torch import Tensor

from deephash_pipeline.common.devices import to_device
from deephash_pipeline.common.randomness import derive_seed, uniform_numbers


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
    rows, columns = (
        to_device(corner[:, None] + torch.arange(side), images.device)
        for corner, side in zip((top, left), size, strict=True)
    )
    image, channel = (torch.arange(count, device=images.device) for count in images.shape[:2])
    return images[image[:, None, None, None], channel[:, None, None], rows[:, None, :, None], columns[:, None, None, :]]
