"""Decoded images as the inputs of a network: chosen by index, moved to the device, cropped, augmented, normalised."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.common.devices import to_device
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.augmentation import AugmentationParameters, augment, centre_crop, random_crop

# Of an accelerator's free memory that undecoded images may take: beyond it, batches are sent one by one.
SHARE_OF_MEMORY = 0.25


class ImageInputs:
    """Normalised images by index.

    Args:
        images: uint8 of shape (n, channels, height, width); may be memory-mapped, then only batches are read.
        statistics: mean and standard deviation of each channel over the training images, in units of [0, 1].
        device: PyTorch device that batches are moved to.
        augmentation: moves of batches drawn with a seed; None for nothing.
        size: height and width that the network takes. From larger images a window is cut: at random, drawn with the
            seed of the augmentation, else in the middle. None for images as they are.

    Raises:
        InputError: images smaller than `size`.

    Example:
        >>> statistics = {"mean": [0.5], "standard_deviation": [0.25]}
        >>> inputs = ImageInputs(np.full((4, 1, 2, 2), 255, dtype=np.uint8), statistics, torch.device("cpu"))
        >>> inputs.batch(np.array([0, 3])).flatten().tolist()
        [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    """

    def __init__(
        self,
        images: NDArray[np.uint8],
        statistics: Mapping[str, list[float]],
        device: torch.device,
        augmentation: AugmentationParameters | None = None,
        size: tuple[int, int] | None = None,
    ) -> None:
        stored = images.shape[2:]
        if size is not None and (size[0] > stored[0] or size[1] > stored[1]):
            raise InputError(
                f"the network takes images of {size[0]}x{size[1]} pixels, those stored have {stored[0]}x{stored[1]}: "
                "set `image_size` of the source or choose another `network`"
            )
        self.images = images
        self.device = device
        self.augmentation = augmentation
        self.statistics = statistics
        self.size = size or stored

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, indices: NDArray[np.int64], seed: int | None = None, first: int = 0) -> Tensor:
        """Images at `indices`, float32 (batch, channels, height, width), mean 0 and deviation 1 over the training set.

        Args:
            indices: int64 of shape (batch,).
            seed: seed of the augmentation; None for the images as they are.
            first: number of the first of them in the whole batch, if this is a piece of one.
        """
        batch = self._decoded(indices)
        if seed is None or self.augmentation is None:
            batch = centre_crop(batch, self.size)
        else:
            batch = random_crop(batch, self.size, seed, first)
            batch = augment(batch.float(), self.augmentation, seed, first)
        samples, channels, height, width = batch.shape
        # Channels last is the layout in which convolutions are fastest, on CPUs as on GPUs. The strides say so even for
        # one channel, where memory looks the same either way.
        last = batch.contiguous(memory_format=torch.channels_last).permute(0, 2, 3, 1)
        rows = last.reshape(samples, height, width * channels).float()
        mean, deviation = self._statistics_of_rows
        rows = rows.div_(255).sub_(mean).div_(deviation)
        return rows.view(samples, height, width, channels).permute(0, 3, 1, 2)

    # What lies on the device is put there at first use: by then it is known which process uses which.
    @cached_property
    def _statistics_of_rows(self) -> tuple[Tensor, Tensor]:
        """Mean and deviation for each value in a row of pixels: long vectors take less time than three numbers."""
        mean = torch.tensor(self.statistics["mean"], dtype=torch.float32, device=self.device)
        deviation = torch.tensor(self.statistics["standard_deviation"], dtype=torch.float32, device=self.device)
        return mean.repeat(self.size[1]), deviation.repeat(self.size[1])

    @cached_property
    def _images_on_device(self) -> Tensor | None:
        if self.device.type != "cuda":
            return None
        free, _ = torch.cuda.mem_get_info(self.device)
        if self.images.nbytes >= SHARE_OF_MEMORY * free:
            return None
        there = torch.empty(self.images.shape, dtype=torch.uint8, device=self.device)
        for start in range(0, len(self.images), 1024):
            there[start : start + 1024] = torch.tensor(self.images[start : start + 1024])
        return there

    def _decoded(self, indices: NDArray[np.int64]) -> Tensor:
        if self._images_on_device is not None:
            return self._images_on_device[to_device(indices, self.device)]
        return to_device(self.images[indices], self.device)
