"""Random changes of training images: shifts, flips, turns, scalings, colours, cuts, a whole batch at once."""

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

WHITE = 255


class AugmentationParameters(Parameters):
    """How far a training image may be changed; all zero, the default, leaves images as they are.

    Attributes:
        shift_pixels: largest shift in whole pixels, drawn for each axis.
        horizontal_flip: True if every other image, by chance, is mirrored left to right.
        quarter_turns: True to turn each image by 0, 90, 180 or 270 degrees, all equally likely. The edges of an image
            that is not square are cut or repeated.
        rotation_degrees: largest rotation to either side, in degrees.
        scale_range: r, for a scale between 1 - r and 1 + r.
        colour_range: r, for a factor of each channel between 1 - r and 1 + r, and a brightness added to all of them of
            at most r times that of white to either side.

    Example:
        >>> AugmentationParameters(shift_pixels=2).moves, AugmentationParameters().moves
        (True, False)
    """

    shift_pixels: int = Field(default=0, ge=0, le=10_000)
    horizontal_flip: bool = False
    quarter_turns: bool = False
    rotation_degrees: float = Field(default=0.0, ge=0, le=180)
    scale_range: float = Field(default=0.0, ge=0, lt=1)
    colour_range: float = Field(default=0.0, ge=0, lt=1)

    @property
    def moves(self) -> bool:
        """Whether any image may be moved."""
        whole = self.shift_pixels or self.horizontal_flip or self.quarter_turns
        return bool(whole or self.rotation_degrees or self.scale_range)

    @property
    def changes(self) -> bool:
        """Whether any image may be moved or coloured."""
        return self.moves or bool(self.colour_range)


class _Moves(NamedTuple):
    """One number for each image, float64 (b,): where in the old image a pixel of the new one is looked up.

    `mirror` is 1 or -1, `quarters` 0 to 3, `across` and `down` are whole pixels, `angle` is in radians.
    """

    angle: Tensor
    quarters: Tensor
    shrink: Tensor
    mirror: Tensor
    across: Tensor
    down: Tensor


def augment(images: Tensor, parameters: AugmentationParameters, seed: int, first: int = 0) -> Tensor:
    """Move and colour every image of a batch by a draw of its own.

    Pixels from outside repeat the nearest edge, so that no move invents a colour: every new pixel is a weighted mean of
    old ones.

    Args:
        images: floating point, 0 to 255, shape (b, c, h, w), on any device.
        parameters: changes that may happen; where nothing may, `images` itself is returned.
        seed: seed of the changes; an image's own depend on it and on the number of the image.
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
    samples = torch.arange(first, first + len(images))
    if parameters.moves and len(images):
        # On the CPU, where cosines and sines are the same whatever the device of the images.
        moves = _draw(parameters, seed, samples)
        resampled = parameters.rotation_degrees or parameters.scale_range
        images = _resample(images, moves) if resampled else _choose_pixels(images, moves)
    if parameters.colour_range and len(images):
        images = _colour(images, parameters.colour_range, derive_seed(seed, "colour"), samples)
    return images


def _draw(parameters: AugmentationParameters, seed: int, samples: Tensor) -> _Moves:
    rotation, scale, flip, across, down, turn = uniform_numbers(seed, samples, draws=6).T
    places = 2 * parameters.shift_pixels + 1
    quarters = torch.floor(4 * turn) if parameters.quarter_turns else torch.zeros_like(turn)
    return _Moves(
        angle=math.radians(parameters.rotation_degrees) * (2 * rotation - 1),
        quarters=quarters,
        shrink=1 / (1 + parameters.scale_range * (2 * scale - 1)),
        mirror=torch.where(flip < 0.5, -1.0, 1.0).double() if parameters.horizontal_flip else torch.ones_like(flip),
        across=torch.floor(places * across) - parameters.shift_pixels,
        down=torch.floor(places * down) - parameters.shift_pixels,
    )


def _choose_pixels(images: Tensor, moves: _Moves) -> Tensor:
    """Move images by whole pixels: each new pixel is an old one."""
    batch, channels, height, width = images.shape
    across = (torch.arange(width) - (width - 1) / 2).expand(batch, 1, width)
    down = (torch.arange(height) - (height - 1) / 2)[:, None].expand(batch, height, 1)
    # A turn by a quarter exchanges the axes; by two quarters it reverses both.
    sideways = (moves.quarters % 2 == 1)[:, None, None]
    sign = torch.where(moves.quarters < 2, 1.0, -1.0).double()[:, None, None]
    columns = moves.mirror[:, None, None] * torch.where(sideways, -sign * down, sign * across)
    rows = torch.where(sideways, sign * across, sign * down)
    column = torch.floor(columns + (width - 1) / 2 + moves.across[:, None, None]).clamp(0, width - 1).long()
    row = torch.floor(rows + (height - 1) / 2 + moves.down[:, None, None]).clamp(0, height - 1).long()
    place = to_device((row * width + column).view(batch, 1, height * width), images.device)
    pixels = images.reshape(batch, channels, height * width)
    return pixels.gather(2, place.expand(-1, channels, -1)).view(images.shape)


def _colour(images: Tensor, largest: float, seed: int, samples: Tensor) -> Tensor:
    """Multiply the channels, and make the image lighter or darker."""
    channels = images.shape[1]
    draws = uniform_numbers(seed, samples, draws=channels + 1)
    drawn = to_device((largest * (2 * draws - 1)).float(), images.device)[:, :, None, None]
    return images * (1 + drawn[:, :channels]) + WHITE * drawn[:, channels:]


def _resample(images: Tensor, moves: _Moves) -> Tensor:
    """Move images by any amount: each new pixel is interpolated between four old ones."""
    _, _, height, width = images.shape
    # Half precision is too coarse for coordinates: at 224 pixels it is off by a tenth of a pixel.
    precision = torch.promote_types(images.dtype, torch.float32)
    x, y = ((torch.arange(side).double() * 2 + 1) / side - 1 for side in (width, height))
    # A rotation is one in pixels; [-1, 1] stretches the two axes differently where an image is not square.
    angle = moves.angle + moves.quarters * (math.pi / 2)
    cosine, sine = moves.shrink * angle.cos(), moves.shrink * angle.sin()
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
