"""Losses with a code for every image of the training set, for which they solve before each epoch."""

from abc import abstractmethod
from dataclasses import InitVar, field

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import PositiveInt
from torch import Tensor

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.losses.hashing_loss import HashingLoss, signs
from deephash_pipeline.losses.labels import class_numbers, is_multi_hot, label_matrix, number_of_classes


class SampleCodesLoss(HashingLoss):
    """A loss whose variables are the network and a code for each image; the network alone makes the codes of a search.

    Training calls `start_epoch` before each epoch and `set_batch` before each step. The codes are in `state_dict`, so
    that a checkpoint has them.

    Args:
        code_length: bits.
        labels: class labels of the training set: class numbers (samples,), or multi-hot (samples, classes).

    Attributes:
        codes: codes of -1 and 1, float32 (samples, code_length); zeros before the first epoch.
        has_label: 1 where an image has a label, float32 (images, classes).
    """

    needs = ("code_length", "labels")
    code_length: PositiveInt
    labels: InitVar[NDArray[np.int64]]
    codes: Tensor = field(init=False)
    has_label: Tensor = field(init=False)
    batch: Tensor | None = field(init=False, default=None)

    def __post_init__(self, labels: NDArray[np.int64]) -> None:
        given = torch.from_numpy(np.asarray(labels))
        if not is_multi_hot(given):
            given = class_numbers(given, len(given))
        self.register_buffer("has_label", label_matrix(given, number_of_classes(given)), persistent=False)
        self.register_buffer("codes", torch.zeros(len(given), self.code_length))

    def start_epoch(self, u: Tensor) -> None:
        """Solve for the codes.

        Args:
            u: outputs u of the training set without augmentation, floating, (samples, code_length).

        Raises:
            InputError: u is of another shape.
        """
        if u.shape != self.codes.shape:
            raise InputError(
                f"u must be {tuple(self.codes.shape)}, a row for every image that {type(self).__name__} was made for, "
                f"got shape {tuple(u.shape)}"
            )
        u = u.float()
        self.codes = self.solved(self.codes.clone() if self.codes.any() else signs(u), u)

    @abstractmethod
    def solved(self, codes: Tensor, u: Tensor) -> Tensor:
        """Return better codes, (samples, code_length), for the network as it is."""

    def set_batch(self, indices: Tensor) -> None:
        """Say which samples the next batch consists of, (batch,)."""
        self.batch = indices

    def codes_of_batch(self, u: Tensor) -> Tensor:
        """Codes of the samples of the batch, (batch, code_length).

        Raises:
            InputError: training has not said which they are.
        """
        if self.batch is None or len(self.batch) != len(u) or not self.codes.any():
            name = type(self).__name__
            raise InputError(f"{name} has a code for every image: call `start_epoch` and `set_batch` before it")
        return self.codes[self.batch].to(u.dtype)
