"""What happens to training images at random: shifts, flips, rotations, scalings and cuts, a whole batch at once."""

import math
from typing import Any, NamedTuple, TypeVar

import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.common.devices import to_device
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import Parameters
from deephash_pipeline.common.randomness import derive_seed, uniform_numbers

Pixels = TypeVar("Pixels", Tensor, NDArray[Any])


class AugmentationParameters(Parameters):
    """How far a training image may be moved; all zero, the default, leaves images as they are.

    Attributes:
        shift_pixels: largest shift in whole pixels, drawn for each axis.
        horizontal_flip: True if every other image, by chance, is mirrored left to right.
        rotation_degrees: largest rotation to either side, in degrees.
        scale_range: r, for a scale between 1 - r and 1 + r.

    Example:
        >>> AugmentationParameters(shift_pixels=2).moves, AugmentationParameters().moves
        (True, False)
    """

    shift_pixels: int = Field(default=0, ge=0, le=10_000)
    horizontal_flip: bool = False
    rotation_degrees: float = Field(default=0.0, ge=0, le=180)
    scale_range: float = Field(default=0.0, ge=0, lt=1)

    @property
    def moves(self) -> bool:
        """Whether any image may be moved."""
        return bool(self.shift_pixels or self.horizontal_flip or self.rotation_degrees or self.scale_range)


class _Moves(NamedTuple):
    """One number for each image, float64 (b,): where in the old image a pixel of the new one is looked up.

    `mirror` is 1 or -1, `across` and `down` are whole pixels, `angle` is in radians.
    """

    angle: Tensor
    shrink: Tensor
    mirror: Tensor
    across: Tensor
    down: Tensor


def augment(images: Tensor, parameters: AugmentationParameters, seed: int, first: int = 0) -> Tensor:
    """Move every image of a batch by a draw of its own.

    Pixels from outside repeat the nearest edge, so no colour is invented; and every new pixel is a weighted mean of old
    ones, so it makes no difference whether the images are normalised before or after.

    Args:
        images: floating point, shape (b, c, h, w), on any device.
        parameters: moves that may happen; where nothing may, `images` itself is returned.
        seed: seed of the moves; an image's own depend on it and on the number of the image.
        first: number of the first image, so that a batch in pieces is moved like the whole.

    Returns:
        A batch of the same shape, type and device.

    Raises:
        InputError: if the images are not a floating-point batch of four dimensions.

    Example:
        >>> images = torch.rand(2, 1, 28, 28)
        >>> augment(images, AugmentationParameters(shift_pixels=2, rotation_degrees=10), seed=0).shape
        torch.Size([2, 1, 28, 28])
    """
    if not images.is_floating_point() or images.ndim != 4:
        raise InputError(
            f"images are {images.dtype} of shape {tuple(images.shape)}: give floating point of shape (b, c, h, w)."
        )
    if not parameters.moves or not len(images):
        return images
    # On the CPU, where cosines and sines are the same whatever the device of the images.
    moves = _draw(parameters, seed, torch.arange(first, first + len(images)))
    if parameters.rotation_degrees or parameters.scale_range:
        return _resample(images, moves)
    return _choose_pixels(images, moves)


def _draw(parameters: AugmentationParameters, seed: int, samples: Tensor) -> _Moves:
    rotation, scale, flip, across, down = uniform_numbers(seed, samples, draws=5).T
    places = 2 * parameters.shift_pixels + 1
    return _Moves(
        angle=math.radians(parameters.rotation_degrees) * (2 * rotation - 1),
        shrink=1 / (1 + parameters.scale_range * (2 * scale - 1)),
        mirror=torch.where(flip < 0.5, -1.0, 1.0).double() if parameters.horizontal_flip else torch.ones_like(flip),
        across=torch.floor(places * across) - parameters.shift_pixels,
        down=torch.floor(places * down) - parameters.shift_pixels,
    )


def _choose_pixels(images: Tensor, moves: _Moves) -> Tensor:
    """Move images by whole pixels: each new pixel is an old one."""
    batch, channels, height, width = images.shape
    centre = (width - 1) / 2
    columns = moves.mirror[:, None] * (torch.arange(width) - centre) + centre + moves.across[:, None]
    rows = torch.arange(height) + moves.down[:, None]
    column = to_device(columns.clamp(0, width - 1).long(), images.device)
    row = to_device(rows.clamp(0, height - 1).long(), images.device)
    place = (row[:, :, None] * width + column[:, None, :]).view(batch, 1, height * width)
    pixels = images.reshape(batch, channels, height * width)
    return pixels.gather(2, place.expand(-1, channels, -1)).view(images.shape)


def _resample(images: Tensor, moves: _Moves) -> Tensor:
    """Move images by any amount: each new pixel is interpolated between four old ones."""
    _, _, height, width = images.shape
    # Half precision is too coarse for coordinates: at 224 pixels it is off by a tenth of a pixel.
    precision = torch.promote_types(images.dtype, torch.float32)
    x, y = ((torch.arange(side).double() * 2 + 1) / side - 1 for side in (width, height))
    # A rotation is one in pixels; [-1, 1] stretches the two axes differently where an image is not square.
    cosine, sine = moves.shrink * moves.angle.cos(), moves.shrink * moves.angle.sin()
    from_column = [(moves.mirror * cosine)[:, None] * x + (2 * moves.across / width)[:, None]]
    from_row = [(-moves.mirror * sine * (height / width))[:, None] * y]
    from_column.append((sine * (width / height))[:, None] * x)
    from_row.append(cosine[:, None] * y + (2 * moves.down / height)[:, None])
    columns = to_device(torch.stack(from_column, dim=1).to(precision), images.device)
    rows = to_device(torch.stack(from_row, dim=1).to(precision), images.device)
    # Two planes, one for each coordinate, are the layout in which sampling reads them fastest.
    grid = (columns[:, :, None, :] + rows[:, :, :, None]).permute(0, 2, 3, 1)
    moved = functional.grid_sample(images.to(precision), grid, padding_mode="border", align_corners=False)
    return moved.to(images.dtype)


def centre_crop(images: Pixels, size: tuple[int, int]) -> Pixels:
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
        seed: seed of the places; that of an image depends on it and on the number of the image.
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
    rows = to_device(top[:, None] + torch.arange(size[0]), images.device)
    columns = to_device(left[:, None] + torch.arange(size[1]), images.device)
    image, channel = (torch.arange(count, device=images.device) for count in images.shape[:2])
    return images[image[:, None, None, None], channel[:, None, None], rows[:, None, :, None], columns[:, None, None, :]]
