"""Where the time of a training step goes: hooks that book it, part by part, on a stopwatch."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from deephash_pipeline.training import resolve_device
from deephash_pipeline.training.gradients import Objective
from deephash_pipeline.training.inputs import Inputs

DEVICE = resolve_device("auto")
LAST_PART = "optimiser"


class Stopwatch:
    """Books the time since its last reading on a part of the step, once the first steps are over.

    The first steps take memory from the system, which later ones use again. On a CUDA device only the sum is known: a
    reading would make the processor wait for the device.

    Args:
        warm_up: steps before it starts.
        at_start: what to do then.
    """

    def __init__(self, warm_up: int, at_start: Callable[[], object] = lambda: None) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.last: float | None = None
        self.steps_to_come = warm_up
        self.at_start = at_start

    def lap(self, part: str) -> None:
        """Read it; the end of the last step of the warm-up starts it."""
        if self.last is not None:
            if DEVICE.type != "cuda":
                self._book(part)
        elif part == LAST_PART:
            self.steps_to_come -= 1
            if self.steps_to_come == 0:
                self.at_start()
                self.last = clock()

    def stop(self) -> None:
        """Read it for the last time; on the CPU the end of the last step has been read already."""
        if DEVICE.type == "cuda":
            self._book("step")

    def _book(self, part: str) -> None:
        now = clock()
        assert self.last is not None, "it was started"
        self.seconds[part] += now - self.last
        self.last = now


class TimedInputs:
    """Inputs whose work is booked on `data`."""

    def __init__(self, inputs: Inputs, watch: Stopwatch) -> None:
        self.inputs = inputs
        self.watch = watch

    def __len__(self) -> int:
        return len(self.inputs)

    def batch(self, indices: NDArray[np.int64], seed: int | None = None, first: int = 0) -> Tensor:
        """Hand over a batch."""
        self.watch.lap("other")
        batch = self.inputs.batch(indices, seed, first)
        self.watch.lap("data")
        return batch


class TimedObjective:
    """An objective whose work is booked on `loss`."""

    def __init__(self, objective: Objective, watch: Stopwatch) -> None:
        self.objective = objective
        self.watch = watch

    def __call__(self, outputs: Tensor, labels: Tensor, /) -> Tensor:
        """Compute it."""
        self.watch.lap("other")
        result = self.objective(outputs, labels)
        self.watch.lap("loss")
        return result


@contextmanager
def timed_layers(network: nn.Module, watch: Stopwatch) -> Iterator[None]:
    """Book trunk and head on `forward`, from the loss to the optimiser on `backward`, then `optimiser`."""
    hooks = [
        register_optimizer_step_pre_hook(lambda *_: watch.lap("backward")),
        register_optimizer_step_post_hook(lambda *_: watch.lap(LAST_PART)),
    ]
    for part in network.children():
        hooks.append(part.register_forward_pre_hook(lambda *_: watch.lap("other")))
        hooks.append(part.register_forward_hook(lambda *_: watch.lap("forward")))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def clock() -> float:
    """Seconds: CPU time of this process, or wall time when the device has done all that it was given."""
    if DEVICE.type != "cuda":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()
