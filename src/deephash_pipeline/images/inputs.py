"""Decoded images as the inputs of a network: chosen by index, moved to the device, augmented, normalised."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.images.augmentation import AugmentationParameters, augment


class ImageInputs:
    """Normalised images by index.

    Args:
        images: uint8 of shape (n, channels, height, width); may be memory-mapped, then only batches are read.
        statistics: mean and standard deviation of each channel over the training images, in units of [0, 1].
        device: where batches go.
        augmentation: what happens to batches drawn with a seed; None for nothing.
    """

    def __init__(
        self,
        images: NDArray[np.uint8],
        statistics: Mapping[str, list[float]],
        device: torch.device,
        augmentation: AugmentationParameters | None = None,
    ) -> None:
        self.images = images
        self.device = device
        self.augmentation = augmentation
        shape = (1, -1, 1, 1)
        self.mean = torch.tensor(statistics["mean"], device=device).view(shape)
        self.standard_deviation = torch.tensor(statistics["standard_deviation"], device=device).view(shape)

    def __len__(self) -> int:
        return len(self.images)

    def batch(self, indices: NDArray[np.int64], seed: int | None = None) -> Tensor:
        """Images at `indices`, float32 (batch, channels, height, width), mean 0 and deviation 1 over the training set.

        Args:
            indices: int64 of shape (batch,).
            seed: of the augmentation; None for the images as they are.
        """
        chosen: NDArray[Any] = np.ascontiguousarray(self.images[indices])
        batch = torch.from_numpy(chosen).to(self.device).float() / 255
        if seed is not None and self.augmentation is not None:
            batch = augment(batch, self.augmentation, torch.Generator().manual_seed(seed))
        normalised = (batch - self.mean) / self.standard_deviation
        # Channels last is the layout in which convolutions are fastest, on CPUs as on GPUs.
        return normalised.contiguous(memory_format=torch.channels_last)
