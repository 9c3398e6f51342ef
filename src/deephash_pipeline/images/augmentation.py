"""Random shifts, flips, rotations and scalings of training images: one resampling per batch, on its device."""

import math

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor
from torch.nn import functional

from deephash_pipeline.counter_random import uniform_numbers
from deephash_pipeline.errors import InputError


class AugmentationParameters(BaseModel):
    """How far a training image may be moved; all zero, the default, leaves images as they are.

    Attributes:
        shift_pixels: largest shift in whole pixels, drawn for each axis.
        horizontal_flip: whether every other image, by chance, is mirrored left to right.
        rotation_degrees: largest rotation to either side, in degrees.
        scale_range: r, for a scale between 1 - r and 1 + r.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    shift_pixels: int = Field(default=0, ge=0)
    horizontal_flip: bool = False
    rotation_degrees: float = Field(default=0.0, ge=0, le=180)
    scale_range: float = Field(default=0.0, ge=0, lt=1)


IDENTITY = AugmentationParameters()


def augment(images: Tensor, parameters: AugmentationParameters, seed: int, first: int = 0) -> Tensor:
    """Move every image of a batch by a draw of its own.

    Pixels from outside repeat the nearest edge, so no colour is invented; and every new pixel is a weighted mean of old
    ones, so it makes no difference whether the images are normalised before or after.

    Args:
        images: floating point, shape (b, c, h, w), on any device.
        parameters: what may happen; where nothing may, `images` itself is returned.
        seed: of the moves; an image's own depend on it and on the number of the image.
        first: number of the first image, so that a batch in pieces is moved like the whole.

    Returns:
        A batch of the same shape, type and device.

    Raises:
        InputError: if the images are not a floating-point batch of four dimensions.
    """
    if not images.is_floating_point() or images.ndim != 4:
        raise InputError(
            f"images are {images.dtype} of shape {tuple(images.shape)}: give floating point of shape (b, c, h, w)."
        )
    if parameters == IDENTITY or not len(images):
        return images
    # Half precision is too coarse for coordinates: at 224 pixels it is off by a tenth of a pixel.
    precision = torch.promote_types(images.dtype, torch.float32)
    source = _source_coordinates(images, parameters, seed, first).to(images.device, precision)
    grid = functional.affine_grid(source, list(images.shape), align_corners=False)
    moved = functional.grid_sample(images.to(precision), grid, padding_mode="border", align_corners=False)
    return moved.to(images.dtype)


def _source_coordinates(images: Tensor, parameters: AugmentationParameters, seed: int, first: int) -> Tensor:
    """Return maps of shape (b, 2, 3) from coordinates of the result to those of the image, both in [-1, 1]."""
    batch, _, height, width = images.shape
    # On the CPU, where cosines and sines are the same whatever the device of the images.
    numbers = uniform_numbers(seed, torch.arange(first, first + batch), draws=5)
    rotation, scale, flip, across, down = numbers.T

    angle = math.radians(parameters.rotation_degrees) * (2 * rotation - 1)
    shrink = 1 / (1 + parameters.scale_range * (2 * scale - 1))
    mirror = torch.where(flip < 0.5, -1.0, 1.0) if parameters.horizontal_flip else torch.ones_like(flip)
    places = 2 * parameters.shift_pixels + 1
    across, down = (torch.floor(places * shift) - parameters.shift_pixels for shift in (across, down))

    # A rotation is one in pixels; [-1, 1] stretches the two axes differently where an image is not square.
    first_row = [mirror * shrink * angle.cos(), -mirror * shrink * angle.sin() * (height / width), 2 * across / width]
    second_row = [shrink * angle.sin() * (width / height), shrink * angle.cos(), 2 * down / height]
    return torch.stack([torch.stack(first_row, dim=-1), torch.stack(second_row, dim=-1)], dim=1)
