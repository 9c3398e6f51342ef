"""What a training step takes, part by part, and beside the bare network: `python -m benchmarks.training_loop`.

Measures `train` itself, by hooks, on random images of the benchmarks' sizes with the parameters of their configuration.
On the CPU with one thread and CPU time; where there is a CUDA device, on that and with wall time.
"""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from benchmarks.command_line import add_rounds, benchmark_parser, chosen, run_benchmark
from benchmarks.measuring import describe_machine, describe_versions, use_one_thread
from benchmarks.training_cases import CASES, CLASSES, HASHING, Case, build_network
from benchmarks.training_tables import DISTRIBUTIONS, TRAINING_LOOP, training_tables, write_training_section
from benchmarks.training_watch import DEVICE, Stopwatch, TimedInputs, TimedObjective, clock, timed_layers
from deephash_pipeline.devices import freed_memory_is_kept
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.networks import (
    build_trunk,
)
from deephash_pipeline.progress import track
from deephash_pipeline.training import CrossEntropy, TrainingParameters, outputs_in_blocks, train
from deephash_pipeline.training.inference import block_size

WARM_UP_STEPS = 8
# Operations of PyTorch that are convolutions or matrix products, forward and backward.
PRODUCTS = (
    "mkldnn_convolution",
    "convolution_backward",
    "cudnn_convolution",
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
)


@dataclass(frozen=True)
class Settings:
    """How much is measured.

    Attributes:
        images: about so many go through the network in one measurement.
        rounds: measurements of everything; the median counts.
        compiling: whether `compile` is tried, which takes a minute.
    """

    images: int = 2000
    rounds: int = 5
    compiling: bool = True


QUICK = Settings(images=500, rounds=2, compiling=False)


class Bench:
    """One case, ready to be measured.

    Args:
        case: what is trained.
        images: about so many go through the network in one measurement.
    """

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
        """Train one short epoch; return seconds by part, without the warm-up, behind which `at_start` is called."""
        network, watch = build_network(self.case), Stopwatch(WARM_UP_STEPS, at_start)
        parameters = TrainingParameters(
            epochs=1,
            batch_size=self.case.batch_size,
            learning_rate=1e-3,
            weight_decay=1e-4,
            schedule="one_cycle",
            **changes,
        )
        objective = TimedObjective(HASHING if self.case.hashing else CrossEntropy(), watch)
        with timed_layers(network, watch):
            train(network, objective, TimedInputs(self.inputs, watch), self.labels, parameters, 1, DEVICE, "benchmark")
        watch.stop()
        return dict(watch.seconds)

    def train_bare(self) -> float:
        """Seconds of as many steps of the same network on random tensors: forward, backward, optimiser."""
        network = build_network(self.case).train().to(device=DEVICE, memory_format=torch.channels_last)  # type: ignore[call-overload]
        optimizer = torch.optim.SGD(
            network.parameters(), lr=1e-6, momentum=0.9, weight_decay=1e-4, nesterov=True, fused=True
        )
        images = self.random_tensor(self.case.batch_size)
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
        """Seconds to compute z of all images, the second time."""
        trunk = build_trunk(self.case.network).to(DEVICE)
        with freed_memory_is_kept():
            outputs_in_blocks(trunk, self.inputs)
            began = clock()
            outputs_in_blocks(trunk, self.inputs)
            return clock() - began

    def encode_bare(self) -> float:
        """Seconds of as many images through the same network on random tensors, the second time."""
        trunk = build_trunk(self.case.network).to(DEVICE).eval()
        size = block_size(trunk)
        with torch.inference_mode(), freed_memory_is_kept():
            blocks = [self.random_tensor(min(size, self.images - start)) for start in range(0, self.images, size)]
            for _ in range(2):
                began = clock()
                for block in blocks:
                    trunk(block)
            return clock() - began

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


def measure_case(case: Case, settings: Settings) -> dict[str, Any]:
    """Measure training and encoding beside the bare network, in turns."""
    bench = Bench(case, settings.images)
    # Once for nothing: compiles the loss, and lets libraries choose their algorithms.
    bench.train()
    rounds = [(bench.train(), bench.train_bare(), bench.encode(), bench.encode_bare()) for _ in range(settings.rounds)]
    parts, bare, encoding, encoding_bare = zip(*rounds, strict=True)
    trained = bench.steps * case.batch_size
    return {
        "case": {**asdict(case), "augmentation": case.augmentation.model_dump()},
        "seconds_of_step": {name: median(part[name] for part in parts) / bench.steps for name in parts[0]},
        "images_per_second": trained / median(sum(part.values()) for part in parts),
        "images_per_second_bare": trained / median(bare),
        "encoded_per_second": bench.images / median(encoding),
        "encoded_per_second_bare": bench.images / median(encoding_bare),
        "share_of_products": bench.share_of_products() if DEVICE.type != "cuda" else None,
    }


def measure_options(case: Case, settings: Settings) -> list[dict[str, Any]]:
    """Measure the options of training beside the default, in turns; compilation is not timed."""
    bench = Bench(case, settings.images)
    options: list[dict[str, Any]] = [{}, {"precision": "bfloat16"}, {"chunk_size": case.batch_size // 4}]
    if settings.compiling:
        options += [{"compile": True}, {"compile": True, "precision": "bfloat16"}]
    measured: list[list[float]] = [[] for _ in options]
    first = []
    for changes in options:
        began = time.perf_counter()
        bench.train(**changes)
        first.append(time.perf_counter() - began)
    for _ in range(settings.rounds):
        for changes, seconds in zip(options, measured, strict=True):
            seconds.append(sum(bench.train(**changes).values()))
    return [
        {
            "network": case.network,
            "options": changes,
            "images_per_second": bench.steps * case.batch_size / median(seconds),
            "first_call_seconds": once,
        }
        for changes, seconds, once in zip(options, measured, first, strict=True)
    ]


def measure(settings: Settings) -> dict[str, Any]:
    """Measure all cases."""
    use_one_thread()
    machine = describe_machine()
    cases = [measure_case(case, settings) for case in track(CASES, "training", len(CASES))]
    tried = [case for case in CASES if not case.hashing]
    return {
        "machine": machine,
        "device": torch.cuda.get_device_name() if DEVICE.type == "cuda" else "CPU, one thread",
        "versions": describe_versions(DISTRIBUTIONS),
        "settings": asdict(settings),
        "cases": cases,
        "options": [row for case in track(tried, "options", len(tried)) for row in measure_options(case, settings)],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit code."""
    parser = benchmark_parser(TRAINING_LOOP, __doc__)
    add_rounds(parser)
    options = parser.parse_args(arguments)
    return run_benchmark(
        TRAINING_LOOP,
        options,
        lambda: measure(chosen(options, Settings(), QUICK)),
        training_tables,
        lambda _: write_training_section(),
    )


if __name__ == "__main__":
    sys.exit(main())
