"""Where one training computes, what its draws derive from, and what it leaves beside the weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from deephash_pipeline.training.resuming.checkpoint import CheckpointFolder

CPU = torch.device("cpu")


@dataclass(frozen=True)
class TrainingRun:
    """One training, as opposed to its parameters, which many may share.

    Attributes:
        name: in progress and errors, such as ``"deephash.b48"``.
        seed: of the order of images, of their augmentation and of dropout.
        device: where to compute; without an index where several share it.
        devices: how many share it, each in a process of its own. More than 1 need `checkpoints`, through which the
            result comes back.
        after_epoch: more metrics for the history, measured on anything but queries.
        checkpoints: where to save and look for checkpoints; None for nowhere.
        configuration: what else makes this training what it is, such as the parameters of the objective. A checkpoint
            that was made with other values is not continued.

    Example:
        >>> run = TrainingRun("deephash.b48", seed=42, after_epoch=lambda: {"validation_map": 0.5})
        >>> run.device, run.devices, run.checkpoints
        (device(type='cpu'), 1, None)
    """

    name: str
    seed: int = 0
    device: torch.device = CPU
    devices: int = 1
    after_epoch: Callable[[], dict[str, float]] | None = None
    checkpoints: CheckpointFolder | None = None
    configuration: Mapping[str, Any] = field(default_factory=dict)
