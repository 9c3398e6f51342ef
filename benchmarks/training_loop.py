"""What a training step takes, part by part, and beside the bare network: `python -m benchmarks.training_loop`.

Measures `train` itself, by hooks, on random images of the benchmarks' sizes with the parameters of their configuration.
On the CPU with one thread and CPU time; where there is a CUDA device, on that and with wall time.
"""

import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from timeit import timeit
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.profiler import ProfilerActivity, profile

from benchmarks.documents import Benchmark, Results, Rows, Settings, rows_by
from benchmarks.measuring import use_one_thread
from benchmarks.training_cases import CASES, CLASSES, Case
from deephash_pipeline.common.devices import freed_memory_is_kept
from deephash_pipeline.common.progress import track
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.networks import build_trunk
from deephash_pipeline.training import (
    LabelledInputs,
    TrainingParameters,
    TrainingRun,
    outputs_in_blocks,
    resolve_device,
    train,
)
from deephash_pipeline.training.inference import INPUTS_AT_A_TIME

DEVICE, LAST_PART = resolve_device("auto"), "optimiser"
PARTS = ("data", "forward", "backward", "loss", "optimiser", "other")
SPEEDS = ("images_per_second", "images_per_second_bare", "encoded_per_second", "encoded_per_second_bare")
WARM_UP_STEPS = 8
# Operations of PyTorch that are convolutions or matrix products, forward and backward.
PRODUCTS = ("mkldnn_convolution", "convolution_backward", "cudnn_convolution", "mm", "addmm", "bmm", "baddbmm")


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


class Bench:
    """One case, ready to be measured with about so many images."""

    def __init__(self, case: Case, images: int) -> None:
        self.case = case
        self.steps = max(2, round(images / case.batch_size))
        self.images = (WARM_UP_STEPS + self.steps) * case.batch_size
        self.shape = build_trunk(case.network).image_shape
        generator = np.random.default_rng(0)
        self.pixels = generator.integers(0, 256, (self.images, *self.shape), dtype=np.uint8)
        self.labels = generator.integers(0, CLASSES, self.images)
        statistics = {"mean": [0.5] * self.shape[0], "standard_deviation": [0.29] * self.shape[0]}
        self.inputs = ImageInputs(self.pixels, statistics, DEVICE, case.augmentation)

    def train(self, at_start: Callable[[], object] = lambda: None, **changes: Any) -> dict[str, float]:
        """Train one short epoch; return seconds by part, without the warm-up, after which `at_start` is called."""
        (network, objective), watch = self.case.build(), Stopwatch(WARM_UP_STEPS, at_start)
        settings = {"epochs": 1, "learning_rate": 1e-3, "weight_decay": 1e-4, "schedule": "one_cycle", **changes}
        parameters = TrainingParameters(batch_size=self.case.batch_size, **settings)
        with timed(network, objective, self.inputs, watch):
            training_set = LabelledInputs(self.inputs, self.labels)
            train(network, objective, training_set, parameters, TrainingRun("benchmark", 1, DEVICE))
        return dict(watch.seconds)

    def train_bare(self) -> float:
        """Seconds of as many steps of the same network on random tensors: forward, backward, optimiser."""
        network = self.case.build()[0].train().to(device=DEVICE, memory_format=torch.channels_last)  # type: ignore[call-overload]
        options = {"lr": 1e-6, "momentum": 0.9, "weight_decay": 1e-4, "nesterov": True, "fused": True}
        optimizer, images = torch.optim.SGD(network.parameters(), **options), self.random_tensor(self.case.batch_size)
        with freed_memory_is_kept():
            for step in range(WARM_UP_STEPS + self.steps):
                if step == WARM_UP_STEPS:
                    began = clock()
                optimizer.zero_grad()
                outputs = network(images)
                outputs.backward(torch.ones_like(outputs))
                optimizer.step()
            return clock() - began

    def encode(self) -> float:
        """Seconds to compute z of all images."""
        trunk = build_trunk(self.case.network).to(DEVICE)
        return _second_call(lambda: outputs_in_blocks(trunk, self.inputs))

    @torch.inference_mode()
    def encode_bare(self) -> float:
        """Seconds of as many images through the same network on random tensors."""
        trunk = build_trunk(self.case.network).to(DEVICE).eval()
        blocks = [
            self.random_tensor(min(INPUTS_AT_A_TIME, self.images - start))
            for start in range(0, self.images, INPUTS_AT_A_TIME)
        ]
        return _second_call(lambda: deque(map(trunk, blocks), maxlen=0))

    def share_of_products(self) -> float:
        """Share of the time of training in convolutions and matrix products, forward and backward."""
        profiler = profile(activities=[ProfilerActivity.CPU])
        self.train(at_start=profiler.start)
        profiler.stop()
        seconds = {event.key: event.self_cpu_time_total for event in profiler.key_averages()}
        in_products = sum(own for name, own in seconds.items() if name.removeprefix("aten::") in PRODUCTS)
        return float(in_products / sum(seconds.values()))

    def random_tensor(self, count: int) -> Tensor:
        """Normal numbers in the layout in which images come."""
        channels, height, width = self.shape
        return torch.randn(count, height, width, channels, device=DEVICE).permute(0, 3, 1, 2)


def _second_call(work: Callable[[], object]) -> float:
    with freed_memory_is_kept():
        work()
        began = clock()
        work()
        return clock() - began


def measure_case(case: Case, settings: Settings) -> dict[str, Any]:
    """Measure training and encoding beside the bare network, in turns."""
    bench = Bench(case, settings["images"])
    # Once for nothing: compiles the loss, and lets libraries choose their algorithms.
    bench.train()
    measured = (bench.train, bench.train_bare, bench.encode, bench.encode_bare)
    parts, *others = zip(*([run() for run in measured] for _ in range(settings["rounds"])), strict=True)
    seconds = [median(sum(part.values()) for part in parts), *map(median, others)]
    images = [bench.steps * case.batch_size] * 2 + [bench.images] * 2
    speeds = {name: count / taken for name, count, taken in zip(SPEEDS, images, seconds, strict=True)}
    of_step = {name: median(part[name] for part in parts) / bench.steps for name in parts[0]}
    products = bench.share_of_products() if DEVICE.type != "cuda" else None
    described = {**case._asdict(), "augmentation": case.augmentation.model_dump()}
    return {"case": described, "seconds_of_step": of_step, **speeds, "share_of_products": products}


def measure_options(case: Case, settings: Settings) -> list[dict[str, Any]]:
    """Measure the options of training beside the default, in turns; compilation is not timed."""
    bench = Bench(case, settings["images"])
    options: list[dict[str, Any]] = [{}, {"precision": "bfloat16"}, {"chunk_size": case.batch_size // 4}]
    if settings["compiling"]:
        options += [{"compile": True}, {"compile": True, "precision": "bfloat16"}]
    first = [timeit(partial(bench.train, **changes), number=1) for changes in options]
    seconds = [[sum(bench.train(**changes).values()) for changes in options] for _ in range(settings["rounds"])]
    speeds = [bench.steps * case.batch_size / median(measured) for measured in zip(*seconds, strict=True)]
    names = ("options", "first_call_seconds", "images_per_second")
    rows = [dict(zip(names, row, strict=True)) for row in zip(options, first, speeds, strict=True)]
    return [{"network": case.network, **row} for row in rows]


def _measure(settings: Settings) -> Results:
    use_one_thread()
    cases = [measure_case(case, settings) for case in track(CASES, "training", len(CASES))]
    tried = [case for case in CASES if not case.hashing]
    options = [row for case in track(tried, "options", len(tried)) for row in measure_options(case, settings)]
    device = torch.cuda.get_device_name() if DEVICE.type == "cuda" else "CPU, one thread"
    return {"tables": tables({"device": device, "cases": cases, "options": options})}


NAME = "training: {case[name]} | batch: {case[batch_size]} | "
SHARES = "step, ms: {ms:.1f}" + "".join(f" | {part}: {{{part}:.1%}}" for part in PARTS)
SHARES += " | products: {share_of_products:.1%}"
THROUGHPUT = (
    "train: {images_per_second:,.0f} | train, bare: {images_per_second_bare:,.0f} | train / bare: {train:.2f} | "
    "encode: {encoded_per_second:,.0f} | encode, bare: {encoded_per_second_bare:,.0f} | encode / bare: {encode:.2f}"
)
OPTIONS = (
    "network: {network} | options: {named} | images per second: {images_per_second:,.0f} | "
    "times the default: {times:.2f} | first epoch, s: {first_call_seconds:.1f}"
)


def tables(results: Results) -> dict[str, Rows | str]:
    """Rows of the shares of a step, of the comparison with the bare network, and of the options."""
    cases, on_cpu = [], results["device"].startswith("CPU")
    for case in results["cases"]:
        step = sum(case["seconds_of_step"].values())
        shares = {part: taken / step for part, taken in case["seconds_of_step"].items()}
        own, own_bare, encoded, encoded_bare = (case[name] for name in SPEEDS)
        cases.append({**case, **shares, "ms": 1e3 * step, "train": own / own_bare, "encode": encoded / encoded_bare})
    default = {row["network"]: row["images_per_second"] for row in results["options"] if not row["options"]}
    options = []
    for row in results["options"]:
        named = ", ".join(f"`{name}: {str(value).lower()}`" for name, value in row["options"].items())
        times = row["images_per_second"] / default[row["network"]]
        options.append({**row, "named": named or "default", "times": times})
    return {
        "shares": rows_by(NAME + SHARES, cases) if on_cpu else "Parts are not timed apart on a CUDA device.",
        "throughput": rows_by(NAME + THROUGHPUT, cases),
        "options": rows_by(OPTIONS, options),
    }


TRAINING_LOOP = Benchmark(
    "training_loop",
    _measure,
    # About so many images in one measurement; compiling takes a minute.
    settings={"images": 2000, "rounds": 5, "compiling": True},
    quick={"images": 500, "rounds": 2, "compiling": False},
)

if __name__ == "__main__":
    sys.exit(TRAINING_LOOP.main(__doc__))
