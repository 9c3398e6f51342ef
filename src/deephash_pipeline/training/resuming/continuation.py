"""When a training is saved, and from where it is continued."""

import hashlib
import logging
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.training.inputs import LabelledInputs
from deephash_pipeline.training.parameters import TrainingParameters, TrainingRun
from deephash_pipeline.training.ranks import any_rank, rank
from deephash_pipeline.training.resuming.checkpoint import TrainingState, first_difference, raw_bytes, weights_digest
from deephash_pipeline.training.resuming.interruption import StopRequest, TrainingInterrupted
from deephash_pipeline.training.resuming.state import Training

logger = logging.getLogger(__name__)

LARGEST_SHARE = 0.02
"""Of the time of a training that goes into its checkpoints, unless they are wanted at every step."""

COMPARED_BYTES = 2**30
"""A training set up to this size is compared whole with that of a checkpoint, a larger one by so much of it."""

INITIAL_WEIGHTS = "initial weights"
TRAINING_SET = "training set"
INPUTS_OF_A_DIGEST = 256


class Continuation:
    """Saves one training at intervals, and continues it from its last checkpoint.

    Args:
        training: training as it begins; `start` puts it where its last checkpoint was made.
        run: seed, name in messages, and the folder where it is saved, if any.
    """

    def __init__(self, training: Training, run: TrainingRun) -> None:
        self.training = training
        self.run = run
        self.checkpoints = run.checkpoints
        self.configuration: dict[str, Any] = {}
        self.steps = 0
        self.last_saved = time.monotonic()
        self.seconds_to_save = 0.0

    def start(self, training_set: LabelledInputs, parameters: TrainingParameters) -> None:
        """Restore the last checkpoint, if there is one of the same configuration.

        Raises:
            InputError: the last checkpoint is of an unfinished training of another configuration.
        """
        if self.checkpoints is None:
            return
        self.configuration = {
            **self.run.configuration,
            # Last: what was configured as `auto` is what it came to.
            **{f"training.{name}": value for name, value in parameters.model_dump().items()},
            "seed": self.run.seed,
            INITIAL_WEIGHTS: weights_digest(self.training.module.state_dict()),
            TRAINING_SET: training_set_digest(training_set),
        }
        stored = self.checkpoints.load()
        if stored is None:
            return
        # What was configured is named rather than what followed from it.
        difference = first_difference(self.configuration, stored.configuration, last=(TRAINING_SET, INITIAL_WEIGHTS))
        if difference is None:
            self.training.restore(stored.tensors, stored.progress)
            self.steps = stored.progress["steps"]
            progress = self.training.progress
            where = "finished before" if progress.finished else f"goes on in epoch {progress.epoch}"
            logger.info("%s: %s, from %s", self.run.name, where, self.checkpoints.folder)
            if rank() == 0:
                self.checkpoints.tidy()
        elif stored.progress["finished"]:
            # Its result is stored elsewhere: nothing is lost. No rank may find the folder half empty.
            logger.info("%s: `%s` has changed, training starts anew", self.run.name, difference)
            any_rank(False)
            if rank() == 0:
                self.checkpoints.clear()
        else:
            raise InputError(self._refusal(difference, stored.configuration))

    def after_step(self, stop: StopRequest) -> None:
        """Save if it is time, or if training is to stop.

        Raises:
            TrainingInterrupted: it was to stop.
        """
        self.steps += 1
        stopping = any_rank(bool(stop))
        if self._is_due() or stopping:
            self.save()
        if stopping:
            progress = self.training.progress
            rest = "the same command goes on from there" if self.checkpoints else "nothing was stored"
            raise TrainingInterrupted(
                f"{self.run.name}: interrupted in epoch {progress.epoch} after step {progress.step}; {rest}",
                stop.signal_number or 0,
            )

    def save(self) -> None:
        """Write a checkpoint now."""
        began = time.monotonic()
        if self.checkpoints is not None and rank() == 0:
            values = {**self.training.values(), "steps": self.steps}
            self.checkpoints.save(TrainingState(self.training.tensors(), values, self.configuration))
        self.last_saved = time.monotonic()
        self.seconds_to_save = self.last_saved - began

    def give_up(self) -> None:
        """Remove the checkpoints of a training that has diverged: no other rate could go on from them."""
        any_rank(False)
        if self.checkpoints is not None and rank() == 0:
            self.checkpoints.clear()

    def _is_due(self) -> bool:
        if self.checkpoints is None:
            return False
        wanted = self.checkpoints.seconds_between
        # A network of gigabytes, or a slow disk, waits longer than was asked for.
        seconds = max(wanted, self.seconds_to_save / LARGEST_SHARE) if wanted else 0
        return time.monotonic() - self.last_saved >= seconds

    def _refusal(self, difference: str, stored: Mapping[str, Any]) -> str:
        assert self.checkpoints is not None, "what is refused comes from there"
        unfinished = f"{self.run.name}: the unfinished training in {self.checkpoints.folder}"
        if difference in (INITIAL_WEIGHTS, TRAINING_SET):
            return f"{unfinished} began with another `{difference}`: bring it back, or delete the folder to start over"
        before, now = (known.get(difference, "not given") for known in (stored, self.configuration))
        remedy = "set it back, or delete the folder to start over"
        return f"{unfinished} has `{difference}` {before} instead of {now}: {remedy}"


def training_set_digest(training_set: LabelledInputs) -> str:
    """SHA-256 of the labels and of the inputs as they reach the network, evenly chosen where they are many."""
    inputs, labels = training_set.inputs, np.ascontiguousarray(training_set.labels)
    digest = hashlib.sha256(f"{labels.dtype} {labels.shape} ".encode() + labels.tobytes())
    size_of_one = inputs.batch(np.arange(1)).nbytes
    compared = min(len(labels), max(INPUTS_OF_A_DIGEST, COMPARED_BYTES // size_of_one))
    chosen = np.unique(np.linspace(0, len(labels) - 1, compared).astype(np.int64))
    for start in range(0, len(chosen), INPUTS_OF_A_DIGEST):
        digest.update(raw_bytes(inputs.batch(chosen[start : start + INPUTS_OF_A_DIGEST])))
    return digest.hexdigest()
