"""How a network is trained, and what a training is told besides."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from deephash_pipeline.common.parameters import Parameters
from deephash_pipeline.training.resuming.checkpoint import CheckpointFolder


class TrainingParameters(Parameters):
    """Stochastic gradient descent with Nesterov momentum.

    Attributes:
        epochs: passes over the training set; with ``plateau`` the most that are made.
        batch_size: images per step, two at least, which losses compare. An incomplete last batch is left out; the next
            epoch has another order.
        learning_rate: the first one of ``plateau``, the peak of ``one_cycle``.
        head_rate_factor: the learning rate of what lies above the trunk, as a multiple of `learning_rate`.
        momentum: weight of the past in the velocity.
        weight_decay: L2 penalty on weights.
        schedule: ``plateau`` is the paper's: times `plateau_factor` whenever the training loss has not fallen for
            `plateau_patience` epochs, until that has happened `plateau_drops` times. ``one_cycle`` rises to the peak in
            the first `warm_up_share` of the steps and falls to zero along a cosine (Smith and Topin 2018).
        plateau_factor: 0.1 in all of the paper's experiments.
        plateau_patience: epochs without improvement before a drop.
        plateau_drops: drops before training counts as converged.
        warm_up_share: share of the steps before the peak of ``one_cycle``.
        averaging: share of the past in a moving average of the weights, with which training ends and by which it is
            measured; near 1 / (1 - `averaging`) steps count. 0 ends with the last weights. Averages generalise better
            (Polyak and Juditsky 1992, doi:10.1137/0330046; Izmailov et al. 2018, arXiv:1803.05407).
        sampler: ``shuffle`` draws a new order each epoch; ``random_skip`` is the paper's approximation of it: after
            each image skip a number of images drawn from U[0, `random_skip_maximum`].
        random_skip_maximum: 200 in the paper.
        chunk_size: images that go through the trunk at a time, so that memory does not grow with `batch_size`; the
            gradient is that of the whole batch, for a second forward pass. None for all at once.
        precision: ``bfloat16`` computes the trunk in half precision where that is safe; the loss is always float32.
            ``auto`` is bfloat16 where the device multiplies it by itself, else float32.
        compile: fuse the trunk's layers with torch.compile; worth its minute of compilation on a GPU.

    Example:
        >>> TrainingParameters(epochs=20, batch_size=128, learning_rate=0.02, schedule="one_cycle").momentum
        0.9
    """

    epochs: PositiveInt
    batch_size: int = Field(ge=2)
    learning_rate: PositiveFloat
    head_rate_factor: PositiveFloat = 1.0
    momentum: float = Field(default=0.9, ge=0, lt=1)
    weight_decay: NonNegativeFloat = 0.0
    schedule: Literal["plateau", "one_cycle"] = "plateau"
    plateau_factor: float = Field(default=0.1, gt=0, lt=1)
    plateau_patience: PositiveInt = 2
    plateau_drops: PositiveInt = 3
    warm_up_share: float = Field(default=0.25, gt=0, lt=1)
    averaging: float = Field(default=0.0, ge=0, lt=1)
    sampler: Literal["shuffle", "random_skip"] = "shuffle"
    random_skip_maximum: int = Field(default=200, ge=0)
    chunk_size: PositiveInt | None = None
    precision: Literal["float32", "bfloat16", "auto"] = "float32"
    compile: bool = False


CPU = torch.device("cpu")


@dataclass(frozen=True)
class TrainingRun:
    """One training, as opposed to its parameters, which many may share.

    Attributes:
        name: name in progress and errors, such as ``"deephash.b48"``.
        seed: seed of the order of images, of their augmentation and of dropout.
        device: device to compute on; without an index under ``torchrun``.
        after_epoch: function that gives more metrics for the history, measured on anything but queries.
        checkpoints: folder to save and look for checkpoints in; None for nowhere.
        configuration: values that make this training what it is, such as the parameters of the objective. A checkpoint
            that was made with other values is not continued.

    Example:
        >>> run = TrainingRun("deephash.b48", seed=42, after_epoch=lambda: {"validation_map": 0.5})
        >>> run.device, run.checkpoints
        (device(type='cpu'), None)
    """

    name: str
    seed: int = 0
    device: torch.device = CPU
    after_epoch: Callable[[], dict[str, float]] | None = None
    checkpoints: CheckpointFolder | None = None
    configuration: Mapping[str, Any] = field(default_factory=dict)
