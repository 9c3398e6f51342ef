"""The training loop: one module, one objective, one schedule; every random draw derives from (seed, epoch, step)."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import nn

from deephash_pipeline.common.devices import freed_memory_is_kept, resolve_precision
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.training.gradients import BatchGradients, FollowsProgress, LearnsCodes, Objective
from deephash_pipeline.training.inference import outputs_in_blocks
from deephash_pipeline.training.inputs import LabelledInputs
from deephash_pipeline.training.parameters import TrainingParameters, TrainingRun
from deephash_pipeline.training.ranks import any_rank, join_ranks, rank, share_state
from deephash_pipeline.training.resuming.continuation import Continuation
from deephash_pipeline.training.resuming.interruption import stop_requests
from deephash_pipeline.training.resuming.state import History, Training
from deephash_pipeline.training.sampling import epoch_batches, steps_per_epoch
from deephash_pipeline.training.schedule import Schedule

logger = logging.getLogger(__name__)


class TrainingDiverged(InputError):
    """Loss or weights became infinite or not a number; the module has the weights of the last good epoch."""


def train(
    module: nn.Module,
    objective: Objective,
    training_set: LabelledInputs,
    parameters: TrainingParameters,
    run: TrainingRun,
) -> History:
    """Minimise an objective over a training set, in place.

    With checkpoints, a training that was interrupted goes on after the last step that was saved and ends with the
    weights it would have had, bit for bit; one that had finished only gives its result again. Under ``torchrun`` every
    process takes its part of each batch through the trunk.

    Args:
        module: maps a batch of inputs to the objective's first argument; moved to the run's device, left in evaluation
            mode.
        objective: maps (outputs, labels) to a loss and metrics to watch. Parameters of its own are learned too, at the
            rate of the head.
        training_set: inputs and labels that are learned from.
        parameters: optimiser, schedule and sampler.
        run: name, seed, device, checkpoints, and what is measured after each epoch.

    Returns:
        One dictionary an epoch: ``epoch`` (from 1), ``learning_rate``, ``loss`` and the means of the watched metrics.

    Raises:
        InputError: labels and inputs of different number, fewer inputs than one batch, or an unfinished training of
            another configuration in the checkpoints; under torchrun, smaller batches than processes.
        TrainingDiverged: non-finite loss or weights; no checkpoint is left, because it would diverge again.
        TrainingInterrupted: SIGTERM or Ctrl-C; a checkpoint of the last whole step is there.

    Example:
        >>> from deephash_pipeline.training import ArrayInputs, CrossEntropy
        >>> labels = np.arange(32) % 2
        >>> inputs = ArrayInputs(np.eye(2, dtype=np.float32)[labels], torch.device("cpu"))
        >>> parameters = TrainingParameters(epochs=3, batch_size=8, learning_rate=0.5)
        >>> training_set, run = LabelledInputs(inputs, labels), TrainingRun("two classes", seed=0)
        >>> history = train(nn.Linear(2, 2), CrossEntropy(), training_set, parameters, run)
        >>> [row["epoch"] for row in history], history[-1]["loss"] < history[0]["loss"]
        ([1, 2, 3], True)
    """
    inputs, labels, device = training_set.inputs, training_set.labels, run.device
    if len(labels) != len(inputs):
        raise InputError(f"{run.name}: {len(inputs)} inputs but {len(labels)} labels")
    join_ranks(device)
    parameters = _of_one_precision(parameters, run)
    steps = steps_per_epoch(len(inputs), parameters, run.name)
    module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    share_state(module)
    own = objective if isinstance(objective, nn.Module) else nn.Module()
    share_state(own.to(device))
    gradients = BatchGradients(module, objective, training_set, parameters, device)
    optimizer = torch.optim.SGD(
        _by_rate(module, own, parameters),
        momentum=parameters.momentum,
        weight_decay=parameters.weight_decay,
        nesterov=parameters.momentum > 0,
        # One pass over the weights instead of one for each operation.
        fused=device.type in ("cpu", "cuda"),
    )
    schedule = Schedule(optimizer, parameters, parameters.epochs * steps)
    training = Training(module, optimizer, schedule, own, parameters.averaging)
    set_progress = objective.set_progress if isinstance(objective, FollowsProgress) else None
    continuation = Continuation(training, run)
    continuation.start(training_set, parameters)

    with (
        freed_memory_is_kept(),
        stop_requests() as stop,
        _shown_steps(training, run.name, parameters, steps) as advance,
    ):
        for epoch in () if training.progress.finished else range(training.progress.epoch, parameters.epochs + 1):
            if isinstance(objective, LearnsCodes) and training.progress.step == 0:
                objective.start_epoch(torch.from_numpy(outputs_in_blocks(module, inputs)).to(device))
                share_state(own)
            module.train()
            for step, indices in enumerate(epoch_batches(len(inputs), parameters, run.seed, epoch)):
                if step < training.progress.step:
                    continue
                if set_progress is not None:
                    set_progress(((epoch - 1) * steps + step) / (parameters.epochs * steps))
                loss, watched = gradients(indices, derive_seed(run.seed, "augmentation", epoch, step))
                optimizer.step()
                training.after_step()
                training.progress.add({"loss": loss, **watched})
                continuation.after_step(stop)
                advance(f"epoch {epoch} of {parameters.epochs}")
            means = training.progress.means()
            # The last step's loss precedes its update.
            weights_are_finite = all(weight.isfinite().all() for weight in training.weights().values())
            if not np.isfinite(means["loss"]) or not weights_are_finite:
                became = "weights became infinite" if np.isfinite(means["loss"]) else f"the loss became {means['loss']}"
                module.load_state_dict(training.progress.last_good)
                module.eval()
                continuation.give_up()
                raise TrainingDiverged(
                    f"{run.name}: {became} in epoch {epoch}: lower `learning_rate` (now {parameters.learning_rate:g}) "
                    "or check the inputs"
                )
            module.eval()
            metrics: dict[str, float] = {}
            if run.after_epoch:
                with training.averaged():
                    metrics = run.after_epoch()
            training.schedule.after_epoch(means["loss"])
            finished = training.schedule.converged or epoch == parameters.epochs
            if finished:
                training.take_average()
            training.end_epoch({**means, **metrics}, finished)
            if finished:
                continuation.save()
                break
    module.eval()
    return training.progress.history


def _by_rate(module: nn.Module, objective: nn.Module, parameters: TrainingParameters) -> list[dict[str, Any]]:
    """Group the weights of a module, which need not have a trunk, and of an objective by their learning rates."""
    rate, factor = parameters.learning_rate, parameters.head_rate_factor
    if factor == 1:
        return [{"params": [*module.parameters(), *objective.parameters()], "lr": rate}]
    parts: dict[bool, list[nn.Parameter]] = {True: [], False: []}
    for name, weight in module.named_parameters():
        parts[name.startswith("trunk.")].append(weight)
    parts[False] += objective.parameters()
    return [{"params": parts[True], "lr": rate}, {"params": parts[False], "lr": rate * factor}]


def _of_one_precision(parameters: TrainingParameters, run: TrainingRun) -> TrainingParameters:
    """Say what a precision of ``auto`` is, on all ranks the same: a checkpoint is continued in its own precision."""
    if parameters.precision != "auto":
        return parameters
    resolved = resolve_precision("auto", run.device)
    resolved = "float32" if any_rank(resolved == "float32") else resolved
    logger.debug("%s: precision auto is %s here", run.name, resolved)
    return parameters.model_copy(update={"precision": resolved})


def _shown_steps(
    training: Training, description: str, parameters: TrainingParameters, steps: int
) -> AbstractContextManager[Callable[[str], None]]:
    """Show the steps of a training from where it stands; on rank 0, and if any are left."""
    progress = training.progress
    if rank() != 0 or progress.finished:
        return nullcontext(lambda where: None)
    done = (progress.epoch - 1) * steps + progress.step
    where = f"epoch {progress.epoch} of {parameters.epochs}"
    return count_steps(description, parameters.epochs * steps, done, where)
