"""GIST: how strongly the blocks of an image respond to filters of all scales and orientations.

The image's contrast is made even first, so that a dim corner counts as much as a bright one. Then each filter passes
what varies at one scale along one orientation, and the magnitude of its response is averaged over each block. The sizes
of the filters are in pixels: images of different sizes give descriptors that are not comparable.

Formulas and constants are those of the authors' toolbox, LabelMe's `LMgist` (Oliva & Torralba, "Modeling the shape of
the scene", IJCV 2001), in the order of its features.
"""

import math
from typing import Annotated

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from deephash_pipeline.common.devices import to_device
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import Parameters
from deephash_pipeline.common.progress import track

# By how many pixels an image is mirrored beyond its edges before it is filtered.
PADDING = 32
CONTRAST_PADDING = 5
# What varies less often than this across the padded image counts as its lighting.
CONTRAST_CYCLES = 4
# Added to the local deviation, lest a smooth patch become noise.
CONTRAST_FLOOR = 0.2
FINEST_FREQUENCY = 0.3
RATIO_OF_SCALES = 1.85
# Pixels of a padded batch, few enough that one filter's responses stay near the processor.
PIXELS_PER_BATCH = 2**16


class GistParameters(Parameters):
    """Parameters of `gist`; the defaults give the 800 features that the paper uses for CIFAR-10.

    The paper names neither number. Eight orientations at each of four scales is the toolbox's usual bank of filters;
    with it, 800 features take 5 x 5 blocks.

    Attributes:
        blocks: number of blocks along each side, 5.
        orientations_per_scale: number of orientations at each scale, from the finest to the coarsest, (8, 8, 8, 8).
    """

    blocks: int = Field(default=5, ge=1)
    orientations_per_scale: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(8, 8, 8, 8), min_length=1)

    @property
    def features(self) -> int:
        """Number of features of an image."""
        return self.blocks**2 * sum(self.orientations_per_scale)


def gist(images: NDArray[np.uint8], parameters: GistParameters, device: torch.device) -> NDArray[np.float32]:
    """Describe square images by the mean response of each block to each filter.

    Args:
        images: uint8 of shape (n, channels, size, size); may be memory-mapped, then only batches are read. Colours are
            averaged.
        parameters: blocks and filters.
        device: PyTorch device to compute on.

    Returns:
        Mean magnitudes, at least 0, float32 of shape (n, `parameters.features`): filter by filter, the finest scale
        first; within a filter column by column of blocks, each from top to bottom. An image of one colour gives zeros.

    Raises:
        InputError: the images are not square, or have fewer pixels along a side than
            blocks.

    Example:
        >>> images = np.random.default_rng(0).integers(256, size=(2, 3, 32, 32), dtype=np.uint8)
        >>> gist(images, GistParameters(), torch.device("cpu")).shape
        (2, 800)
    """
    count, _, height, width = images.shape
    if height != width or height < parameters.blocks:
        raise InputError(
            f"images have {height} x {width} pixels, but GIST takes squares of at least {parameters.blocks} blocks: "
            "crop or resize them, or choose fewer blocks."
        )
    low_pass = to_device(_low_pass(height + 2 * CONTRAST_PADDING), device)
    filters = to_device(_filters(height + 2 * PADDING, parameters.orientations_per_scale), device)
    averages = to_device(_averages(height, parameters.blocks), device)
    features = np.empty((count, parameters.features), dtype=np.float32)
    rows = max(1, PIXELS_PER_BATCH // filters[0].numel())
    starts = range(0, count, rows)
    for start in track(starts, "gist", len(starts)):
        batch = to_device(images[start : start + rows].mean(axis=1, dtype=np.float32), device)
        even = _even_contrast(_stretch(batch), low_pass)
        features[start : start + rows] = _block_means(even, filters, averages).cpu().numpy()
    return features


def _stretch(images: Tensor) -> Tensor:
    """Scale the values of each image to 0..255; those of a constant image to 0."""
    least = images.amin(dim=(1, 2), keepdim=True)
    spread = images.amax(dim=(1, 2), keepdim=True) - least
    return 255 * (images - least) / torch.where(spread > 0, spread, 1)


def _even_contrast(images: Tensor, low_pass: Tensor) -> Tensor:
    """Subtract the local mean of the logarithm from it and divide by the local deviation."""
    logarithms = _mirror(torch.log1p(images), CONTRAST_PADDING)
    details = logarithms - _filtered(logarithms, low_pass)
    deviations = _filtered(details.square(), low_pass).abs().sqrt()
    inside = slice(CONTRAST_PADDING, -CONTRAST_PADDING)
    return (details / (CONTRAST_FLOOR + deviations))[:, inside, inside]


def _filtered(images: Tensor, low_pass: Tensor) -> Tensor:
    filtered: Tensor = torch.fft.irfft2(torch.fft.rfft2(images) * low_pass, s=images.shape[1:])
    return filtered


def _block_means(images: Tensor, filters: Tensor, averages: Tensor) -> Tensor:
    """Mean magnitude of each response in each block, shape (b, filters x blocks x blocks)."""
    spectrum = torch.fft.fft2(_mirror(images, PADDING))
    inside = slice(PADDING, -PADDING)
    means = []
    for response_to_frequency in filters:
        # Columns beyond the image are cut off between the two transforms: the second then has less than half the work.
        rows = torch.fft.ifft(spectrum * response_to_frequency, dim=2)[:, :, inside]
        magnitudes = torch.fft.ifft(rows, dim=1)[:, inside].abs()
        means.append((averages @ magnitudes @ averages.T).mT)
    return torch.stack(means, dim=1).flatten(1)


def _mirror(images: Tensor, padding: int) -> Tensor:
    """Mirror images (b, size, size) beyond their edges, the outermost pixels included, as often as it takes."""
    size = images.shape[1]
    place = torch.from_numpy(np.pad(np.arange(size), padding, mode="symmetric")).to(images.device)
    return images[:, place][:, :, place]


def _low_pass(size: int) -> NDArray[np.float32]:
    """Gaussian over the frequencies that a real transform keeps, (size, size // 2 + 1): 1/2 at `CONTRAST_CYCLES`."""
    squares = np.square(np.fft.fftfreq(size)[:, np.newaxis]) + np.square(np.fft.rfftfreq(size))
    return np.asarray(np.exp(-squares * math.log(2) * (size / CONTRAST_CYCLES) ** 2), dtype=np.float32)


def _filters(size: int, orientations_per_scale: tuple[int, ...]) -> NDArray[np.float32]:
    """Response of each filter to each frequency, (filters, size, size), rows over vertical frequencies."""
    down, across = np.meshgrid(np.fft.fftfreq(size), np.fft.fftfreq(size), indexing="ij")
    radius, angle = np.hypot(across, down), np.arctan2(down, across)
    filters = []
    for scale, orientations in enumerate(orientations_per_scale):
        frequency = FINEST_FREQUENCY / RATIO_OF_SCALES**scale
        for orientation in range(orientations):
            turned = angle + math.pi * orientation / orientations
            turned = np.where(turned > math.pi, turned - 2 * math.pi, turned)
            narrowness = 16 * (orientations / 32) ** 2
            filters.append(np.exp(-3.5 * (radius / frequency - 1) ** 2 - 2 * math.pi * narrowness * turned**2))
    return np.stack(filters).astype(np.float32)


def _averages(size: int, blocks: int) -> NDArray[np.float32]:
    """Row b averages over the pixels of block b, (blocks, size); the sizes of blocks differ by a pixel at most."""
    edges = np.arange(blocks + 1) * size // blocks
    pixels = np.arange(size)
    inside = (pixels >= edges[:-1, np.newaxis]) & (pixels < edges[1:, np.newaxis])
    return (inside / np.diff(edges)[:, np.newaxis]).astype(np.float32)
