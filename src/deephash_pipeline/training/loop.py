"""The training loop: one module, one objective, one schedule; every random draw derives from (seed, epoch, step)."""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from deephash_pipeline.errors import InputError
from deephash_pipeline.progress import track
from deephash_pipeline.seeds import derive_seed

from .inputs import Inputs
from .parameters import TrainingParameters
from .sampling import epoch_batches, steps_per_epoch
from .schedule import build_schedule

History = list[dict[str, float]]


class Objective(Protocol):
    """A loss with figures to watch."""

    def __call__(self, outputs: Tensor, labels: Tensor, /) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the scalar to minimise and detached scalars by name."""


class TrainingDiverged(InputError):
    """The loss became infinite or not a number.

    Attributes:
        description: of the training, as given to `train`.
        weights: state of the module after the last good epoch, on the CPU; the module holds it too.
    """

    def __init__(self, message: str, description: str, weights: dict[str, Tensor]) -> None:
        super().__init__(message)
        self.description = description
        self.weights = weights


def train(
    module: nn.Module,
    objective: Objective,
    inputs: Inputs,
    labels: NDArray[np.int64],
    parameters: TrainingParameters,
    seed: int,
    device: torch.device,
    description: str,
    after_epoch: Callable[[], dict[str, float]] | None = None,
) -> History:
    """Minimise an objective over a training set, in place.

    Args:
        module: maps a batch of inputs to the objective's first argument; moved to `device`, left in evaluation mode.
        objective: maps (outputs, labels) to a loss and figures to watch.
        inputs: the training set.
        labels: int64 of shape (samples,).
        parameters: optimiser, schedule and sampler.
        seed: of the order of images and of their augmentation.
        device: where to compute.
        description: name of the run in progress and errors, such as ``"fine_tuning.b48"``.
        after_epoch: more figures for the history, measured on anything but queries.

    Returns:
        One dictionary an epoch: ``epoch`` (from 1), ``learning_rate``, ``loss`` and the means of the watched figures.

    Raises:
        InputError: labels and inputs of different number, or fewer inputs than one batch.
        TrainingDiverged: non-finite loss.
    """
    if len(labels) != len(inputs):
        raise InputError(f"{description}: {len(inputs)} inputs but {len(labels)} labels")
    steps = steps_per_epoch(len(inputs), parameters)
    module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    labels_on_device = torch.from_numpy(np.asarray(labels)).to(device)
    optimizer = torch.optim.SGD(
        module.parameters(),
        lr=parameters.learning_rate,
        momentum=parameters.momentum,
        weight_decay=parameters.weight_decay,
        nesterov=parameters.momentum > 0,
    )
    schedule = build_schedule(optimizer, parameters, parameters.epochs * steps)
    last_good = _copy_of_state(module)
    history: History = []

    for epoch in track(range(1, parameters.epochs + 1), description, parameters.epochs):
        module.train()
        learning_rate = float(optimizer.param_groups[0]["lr"])
        totals: dict[str, Tensor] = {}
        for step, indices in enumerate(epoch_batches(len(inputs), parameters, seed, epoch)):
            batch = inputs.batch(indices, derive_seed(seed, "augmentation", epoch, step))
            loss, watched = objective(module(batch), labels_on_device[torch.from_numpy(indices).to(device)])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.after_step()
            # Sums stay on the device: reading them at every step would make the CPU wait for the accelerator.
            for name, figure in {"loss": loss.detach(), **watched}.items():
                totals[name] = totals.get(name, torch.zeros((), device=device)) + figure
        means = {name: total.item() / steps for name, total in totals.items()}
        if not np.isfinite(means["loss"]):
            module.load_state_dict(last_good)
            module.eval()
            message = (
                f"{description}: the loss became {means['loss']} in epoch {epoch}: lower `learning_rate` "
                f"(now {parameters.learning_rate:g}) or check the inputs"
            )
            raise TrainingDiverged(message, description, {name: good.cpu() for name, good in last_good.items()})
        last_good = _copy_of_state(module)
        module.eval()
        history.append(
            {"epoch": epoch, "learning_rate": learning_rate, **means, **(after_epoch() if after_epoch else {})}
        )
        schedule.after_epoch(means["loss"])
        if schedule.converged:
            break
    return history


def _copy_of_state(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
