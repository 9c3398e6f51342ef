"""Where the time of a training step goes: hooks that book it, part by part, on a stopwatch."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.training import resolve_device

DEVICE = resolve_device("auto")
LAST_PART = "optimiser"


class Stopwatch:
    """Books the time since its last reading on a part of the step, once the warm-up is over; on CUDA only the sum."""

    def __init__(self, warm_up: int, at_start: Callable[[], object] = lambda: None) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.last: float | None = None
        self.steps_to_come = warm_up
        self.at_start = at_start

    def lap(self, part: str) -> None:
        """Read it; the end of the last step of the warm-up starts it."""
        if self.last is not None:
            if DEVICE.type != "cuda":
                self.book(part)
        elif part == LAST_PART:
            self.steps_to_come -= 1
            if self.steps_to_come == 0:
                self.at_start()
                self.last = clock()

    def book(self, part: str) -> None:
        """Book the time since the last reading."""
        now = clock()
        if self.last is not None:
            self.seconds[part] += now - self.last
        self.last = now


@contextmanager
def timed(network: nn.Module, objective: nn.Module, inputs: ImageInputs, watch: Stopwatch) -> Iterator[None]:
    """Book inputs on `data`, trunk and head on `forward`, the objective on `loss`, the rest up to the optimiser."""
    batch_of = inputs.batch

    def timed_batch(*arguments: Any, **keywords: Any) -> Any:
        watch.lap("other")
        batch = batch_of(*arguments, **keywords)
        watch.lap("data")
        return batch

    hooks = [
        register_optimizer_step_pre_hook(lambda *_: watch.lap("backward")),
        register_optimizer_step_post_hook(lambda *_: watch.lap(LAST_PART)),
    ]
    for module, part in [*((child, "forward") for child in network.children()), (objective, "loss")]:
        hooks.append(module.register_forward_pre_hook(lambda *_: watch.lap("other")))
        hooks.append(module.register_forward_hook(lambda *_, part=part: watch.lap(part)))
    try:
        with patch.object(inputs, "batch", timed_batch):
            yield
    finally:
        for hook in hooks:
            hook.remove()
    if DEVICE.type == "cuda":
        watch.book("step")


def clock() -> float:
    """Seconds: CPU time of this process, or wall time when the device has done all that it was given."""
    if DEVICE.type != "cuda":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()
