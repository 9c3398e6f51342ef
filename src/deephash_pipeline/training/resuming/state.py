"""State of a training between two steps, taken apart for a checkpoint and put together again."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.training.schedule import Schedule

PARTS = ("module", "objective", "last_good", "momentum", "total", "average")
History = list[dict[str, float]]


@dataclass
class Progress:
    """How far a training has come.

    Attributes:
        learning_rate: learning rate that the current epoch began with.
        last_good: state of the module after the last epoch with a finite loss.
        epoch: the current one, from 1.
        step: batches of it that are done.
        totals: sums over those of the loss and the watched metrics, on the device.
        history: a row for each whole epoch.
        finished: True if nothing is left to do.
    """

    learning_rate: float
    last_good: dict[str, Tensor]
    epoch: int = 1
    step: int = 0
    totals: dict[str, Tensor] = field(default_factory=dict)
    history: History = field(default_factory=list)
    finished: bool = False

    def add(self, metrics: Mapping[str, Tensor]) -> None:
        """Count a step. Sums stay on the device: to read them at every step would make the CPU wait for it."""
        if self.step and metrics.keys() != self.totals.keys():
            differing = ", ".join(sorted(metrics.keys() ^ self.totals))
            raise InputError(f"watched metrics differ from batch to batch: {differing}")
        for name, metric in metrics.items():
            self.totals[name] = self.totals[name] + metric if name in self.totals else metric.clone()
        self.step += 1

    def means(self) -> dict[str, float]:
        """Mean metrics of the current epoch."""
        return {name: total.item() / self.step for name, total in self.totals.items()}


class Training:
    """Module, optimiser, schedule and progress of one training, and the objective, which may learn too.

    Args:
        module: what is trained.
        optimizer: its optimiser.
        schedule: its schedule.
        objective: what is minimised.
        averaging: share of the past in the average of the module's weights; 0 for no average.
    """

    def __init__(
        self,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        objective: nn.Module,
        averaging: float = 0.0,
    ) -> None:
        self.module = module
        self.optimizer = optimizer
        self.schedule = schedule
        self.objective = objective
        self.average = moving_average(module, averaging) if averaging else None
        self.progress = Progress(self.learning_rate, self.copy_of_module())

    @property
    def learning_rate(self) -> float:
        """The optimiser's, now."""
        return float(self.optimizer.param_groups[0]["lr"])

    def weights(self) -> dict[str, nn.Parameter]:
        """What is learned: the module's parameters, and those of the objective."""
        return {
            **dict(self.module.named_parameters()),
            **{f"objective.{name}": weight for name, weight in self.objective.named_parameters()},
        }

    def copy_of_module(self) -> dict[str, Tensor]:
        """Copy the module's parameters and buffers."""
        return {name: tensor.detach().clone() for name, tensor in self.module.state_dict().items()}

    def after_step(self) -> None:
        """Follow a step of the optimiser."""
        self.schedule.after_step()
        if self.average is not None:
            self.average.update_parameters(self.module)

    def take_average(self) -> None:
        """Give the module the average of its weights, if there is one."""
        if self.average is not None:
            self.module.load_state_dict(self.average.module.state_dict())

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Let the module have the average of its weights for a while."""
        last = self.copy_of_module() if self.average is not None else {}
        self.take_average()
        yield
        if last:
            self.module.load_state_dict(last)

    def end_epoch(self, metrics: Mapping[str, float], finished: bool) -> None:
        """Close the current epoch with its metrics; the schedule has seen its loss by now."""
        progress = self.progress
        # Python's own floats are what a checkpoint gives back; NumPy's would be written with other digits.
        measured = {name: float(metric) for name, metric in metrics.items()}
        row = {"epoch": progress.epoch, "learning_rate": progress.learning_rate, **measured}
        self.progress = Progress(
            self.learning_rate, self.copy_of_module(), progress.epoch + 1, 0, {}, [*progress.history, row], finished
        )

    def tensors(self) -> dict[str, Tensor]:
        """Name all tensors that training depends on; on the CPU."""
        parts: dict[str, Mapping[str, Tensor]] = {"module": self.module.state_dict()}
        if not self.progress.finished:
            parts |= {"last_good": self.progress.last_good, "momentum": self._momentum(), "total": self.progress.totals}
            parts["objective"] = self.objective.state_dict()
            parts["average"] = {} if self.average is None else self.average.state_dict()
        return {
            f"{part}.{name}": tensor.detach().cpu() for part, named in parts.items() for name, tensor in named.items()
        }

    def values(self) -> dict[str, Any]:
        """Give everything else: numbers, texts, lists and dictionaries."""
        return {
            "epoch": self.progress.epoch,
            "step": self.progress.step,
            "learning_rate": self.progress.learning_rate,
            "history": self.progress.history,
            # A safetensors file has an order of its own; this is that of the columns of the history.
            "watched": list(self.progress.totals),
            "finished": self.progress.finished,
            "optimizer": [
                {key: value for key, value in group.items() if key != "params"} for group in self.optimizer.param_groups
            ],
            "schedule": self.schedule.scheduler.state_dict(),
        }

    def restore(self, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
        """Put a training of the same kind into the state that `tensors` and `values` gave."""
        parts: dict[str, dict[str, Tensor]] = {part: {} for part in PARTS}
        for name, tensor in tensors.items():
            part, _, rest = name.partition(".")
            parts[part][rest] = tensor
        self.module.load_state_dict(parts["module"])
        if parts["objective"]:
            self.objective.load_state_dict(parts["objective"])
        if self.average is not None and parts["average"]:
            self.average.load_state_dict(parts["average"])
        for name, parameter in self.weights().items():
            if name in parts["momentum"]:
                # In the layout of the parameter, as PyTorch makes it: vectors then cut it alike, to the last bit.
                buffer = torch.empty_like(parameter, memory_format=torch.preserve_format).detach()
                self.optimizer.state[parameter]["momentum_buffer"] = buffer.copy_(parts["momentum"][name])
        for group, stored in zip(self.optimizer.param_groups, values["optimizer"], strict=True):
            group.update(stored)
        self.schedule.scheduler.load_state_dict(values["schedule"])
        device = next(self.module.parameters()).device
        self.progress = Progress(
            values["learning_rate"],
            {name: tensor.to(device) for name, tensor in parts["last_good"].items()},
            values["epoch"],
            values["step"],
            {name: parts["total"][name].to(device) for name in values["watched"]},
            values["history"],
            values["finished"],
        )

    def _momentum(self) -> dict[str, Tensor]:
        state = self.optimizer.state
        buffers = {name: state[p].get("momentum_buffer") for name, p in self.weights().items() if p in state}
        return {name: buffer for name, buffer in buffers.items() if buffer is not None}


def moving_average(module: nn.Module, share: float) -> AveragedModel:
    """Begin a moving average of a module's weights and running statistics; the first steps weigh more, all but alike.

    Example:
        >>> module = nn.Linear(1, 1, bias=False)
        >>> average = moving_average(module, 0.5)
        >>> for weight in (1.0, 3.0):
        ...     _ = module.weight.data.fill_(weight)
        ...     average.update_parameters(module)
        >>> average.module.weight.item()
        2.636...
    """

    def follow(averages: Sequence[Tensor], now: Sequence[Tensor], steps: Tensor | int) -> None:
        # A tensor all along: to read it would make the CPU wait for the device.
        new = 1 - ((1 + torch.as_tensor(steps)) / (10 + steps)).clamp(max=share)
        for average, tensor in zip(averages, now, strict=True):
            if average.is_floating_point():
                average.lerp_(tensor, new.to(average.dtype))
            else:
                average.copy_(tensor)

    return AveragedModel(module, multi_avg_fn=follow, use_buffers=True)
