"""When a training saves itself, and from where it goes on."""

import hashlib
import logging
import time
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.errors import InputError

from .checkpoint import CheckpointFolder, TrainingState, first_difference
from .inputs import Inputs
from .interruption import StopRequest, TrainingInterrupted
from .parameters import TrainingParameters
from .ranks import any_rank, rank
from .state import Training

logger = logging.getLogger(__name__)

# So many inputs stand for the whole training set when it is compared with that of a checkpoint.
FINGERPRINT_INPUTS = 256


class Resuming:
    """Saves one training at intervals and restores it.

    Args:
        training: as it begins; `start` puts it where its last checkpoint was made.
        checkpoints: None for a training that is neither saved nor restored.
        description: name of the training in messages.
    """

    def __init__(self, training: Training, checkpoints: CheckpointFolder | None, description: str) -> None:
        self.training = training
        self.checkpoints = checkpoints
        self.description = description
        self.configuration: dict[str, Any] = {}
        self.steps = 0
        self.last_saved = time.monotonic()

    def start(
        self,
        inputs: Inputs,
        labels: NDArray[np.int64],
        parameters: TrainingParameters,
        seed: int,
        configuration: Mapping[str, Any],
    ) -> None:
        """Restore the last checkpoint, if there is one of the same configuration.

        Raises:
            InputError: the last checkpoint is of an unfinished training of another configuration.
        """
        if self.checkpoints is None:
            return
        self.configuration = {
            **{f"training.{name}": value for name, value in parameters.model_dump().items()},
            **configuration,
            "seed": seed,
            "initial weights": _digest(self.training.module.state_dict().values()),
            "training set": _fingerprint(inputs, labels),
        }
        stored = self.checkpoints.load()
        if stored is None:
            return
        difference = first_difference(self.configuration, stored.configuration)
        if difference is None:
            self.training.restore(stored.tensors, stored.progress)
            self.steps = stored.progress["steps"]
            progress = self.training.progress
            where = "finished before" if progress.finished else f"goes on in epoch {progress.epoch}"
            logger.info("%s: %s, from %s", self.description, where, self.checkpoints.folder)
        elif stored.finished:
            # Its result is stored elsewhere: nothing is lost.
            logger.info("%s: `%s` has changed, training starts anew", self.description, difference)
            self.checkpoints.clear()
        else:
            before, now = (held.get(difference) for held in (stored.configuration, self.configuration))
            raise InputError(
                f"{self.description}: the unfinished training in {self.checkpoints.folder} has `{difference}` {before} "
                f"instead of {now}: set it back, or delete the folder to start over"
            )

    def after_step(self, stop: StopRequest) -> None:
        """Save if it is time, or if training is to stop.

        Raises:
            TrainingInterrupted: it was to stop.
        """
        self.steps += 1
        stopping = any_rank(bool(stop))
        due = self.checkpoints is not None and time.monotonic() - self.last_saved >= self.checkpoints.seconds_between
        if due or stopping:
            self.save()
        if stopping:
            progress = self.training.progress
            kept = "the same command goes on from there" if self.checkpoints else "nothing was kept"
            raise TrainingInterrupted(
                f"{self.description}: interrupted in epoch {progress.epoch} behind step {progress.step}; {kept}",
                stop.signal_number or 0,
            )

    def save(self) -> None:
        """Write a checkpoint now."""
        if self.checkpoints is not None and rank() == 0:
            values = {**self.training.values(), "steps": self.steps}
            self.checkpoints.save(TrainingState(self.training.tensors(), values, self.configuration), self.steps)
        self.last_saved = time.monotonic()


def _digest(tensors: Iterable[Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _fingerprint(inputs: Inputs, labels: NDArray[np.int64]) -> str:
    """Tell training sets apart by their labels and by some of their inputs, as they reach the network."""
    chosen = np.unique(np.linspace(0, len(labels) - 1, FINGERPRINT_INPUTS).astype(np.int64))
    return hashlib.sha256(labels.tobytes() + _digest([inputs.batch(chosen)]).encode()).hexdigest()
