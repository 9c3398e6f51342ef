"""The exponentiated loss beside simpler ways and rivals' losses: `python -m benchmarks.loss`, or `make bench`.

A cell is a size of batch and a code length; in each, all losses take turns. Results go to
`benchmarks/results/loss.json`, and from there into the tables of `docs/performance.md`.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

from benchmarks.command_line import add_rounds, benchmark_parser, chosen, run_benchmark
from benchmarks.documents import (
    PROJECT,
    write_section,
)
from benchmarks.loss_memory import CLASSES, added_in_new_process
from benchmarks.loss_tables import CLOCK, OURS, OURS_TWO_THREADS, loss_tables
from benchmarks.measuring import (
    CHAIN_CYCLES,
    Method,
    Timing,
    calls_lasting,
    describe_machine,
    describe_versions,
    interleaved,
    run_clock_chain,
    use_one_thread,
)
from benchmarks.rival_losses import LOSSES, fused, gradient_of, random_batch
from deephash_pipeline.devices import freed_memory_is_kept
from deephash_pipeline.progress import track

SECTION = "loss"
DISTRIBUTIONS = ("numpy", "numba", "torch")
# A measurement lasts about so long, though one call may take a fraction of a millisecond.
SECONDS_OF_A_MEASUREMENT = 0.2
# Those that compute the same loss agree to so much of the largest gradient.
AGREEMENT = 1e-4
SAME_LOSS = ("tiles", "naive", "bit by bit")
DEVICE_BATCH, DEVICE_CODE_LENGTH, DEVICE_CALLS = 16_384, 48, 20


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        batches: samples in a batch.
        code_lengths: bits.
        rounds: measurements of every loss; the median counts.
    """

    batches: tuple[int, ...] = (128, 512, 2048)
    code_lengths: tuple[int, ...] = (12, 48)
    rounds: int = 5


QUICK = Settings(batches=(128, 512), rounds=3)


def measure_cell(batch: int, code_length: int, rounds: int) -> dict[str, Any]:
    """Time all losses on one batch, and weigh each in a process of its own.

    Raises:
        RuntimeError: if two ways to compute one loss do not agree.
    """
    u, labels = random_batch(batch, code_length, CLASSES)

    def on_two_threads() -> Tensor:
        torch.set_num_threads(2)
        try:
            return gradient_of(fused, u, labels)
        finally:
            torch.set_num_threads(1)

    runs: dict[str, Callable[[], Any]] = {name: partial(gradient_of, loss, u, labels) for name, loss in LOSSES.items()}
    if (os.cpu_count() or 1) > 1:
        runs[OURS_TWO_THREADS] = on_two_threads
    timings = _interleaved(runs, rounds)
    with freed_memory_is_kept():
        timings_in_kept_memory = _interleaved(runs, rounds)
    ours = timings[OURS].result
    for name in SAME_LOSS:
        if (timings[name].result - ours).abs().max() > AGREEMENT * ours.abs().max():
            raise RuntimeError(f"`{name}` and `{OURS}` give different gradients at {batch} samples, {code_length} bits")
    return {
        "batch": batch,
        "code_length": code_length,
        "clock_hertz": CHAIN_CYCLES / timings[CLOCK].cpu_seconds,
        "seconds": _seconds(timings, runs),
        "seconds_in_kept_memory": _seconds(timings_in_kept_memory, runs),
        "mebibytes": {name: added_in_new_process(name, batch, code_length) for name in LOSSES},
    }


def _interleaved(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Timing]:
    methods = [Method(name, run, calls_lasting(run, SECONDS_OF_A_MEASUREMENT)) for name, run in runs.items()]
    return interleaved([Method(CLOCK, run_clock_chain), *methods], rounds)


def _seconds(timings: dict[str, Timing], names: Iterable[str]) -> dict[str, dict[str, float]]:
    return {name: {"cpu": timings[name].cpu_seconds, "wall": timings[name].wall_seconds} for name in names}


def measure_first_calls() -> list[dict[str, float]]:
    """Seconds of the first calls in a process with nothing compiled, and in the next process.

    PyTorch's own first gradient comes before ours, so that it is not counted with it.
    """
    command = [sys.executable, "-m", "benchmarks.loss_first_call", "tiles", OURS]
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        outputs = [
            subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True, text=True).stdout
            for _ in range(2)
        ]
    return [json.loads(output) for output in outputs]


def measure_device() -> dict[str, Any] | None:
    """Time the kernel on a CUDA device at a large batch; None without one."""
    if not torch.cuda.is_available():
        return None
    u, labels = random_batch(DEVICE_BATCH, DEVICE_CODE_LENGTH, CLASSES)
    u, labels = u.detach().cuda().requires_grad_(), labels.cuda()
    gradient_of(fused, u, labels)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    milliseconds = []
    for _ in range(DEVICE_CALLS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        gradient_of(fused, u, labels)
        end.record()
        torch.cuda.synchronize()
        milliseconds.append(start.elapsed_time(end))
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "processors": properties.multi_processor_count,
        "clock_hertz": 1e3 * properties.clock_rate,
        "batch": DEVICE_BATCH,
        "code_length": DEVICE_CODE_LENGTH,
        "seconds": sorted(milliseconds)[DEVICE_CALLS // 2] / 1e3,
        "mebibytes": (torch.cuda.max_memory_allocated() - before) / 2**20,
    }


def measure(settings: Settings) -> dict[str, Any]:
    """Measure all cells."""
    use_one_thread()
    machine = describe_machine()
    first_calls = measure_first_calls()
    run_clock_chain()
    sizes = list(product(settings.batches, settings.code_lengths))
    cells = [measure_cell(*size, settings.rounds) for size in track(sizes, "loss", len(sizes))]
    return {
        "machine": machine,
        "versions": describe_versions(DISTRIBUTIONS),
        "settings": asdict(settings),
        "first_calls": first_calls,
        "cells": cells,
        "device": measure_device(),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit code."""
    parser = benchmark_parser(SECTION, __doc__)
    add_rounds(parser)
    options = parser.parse_args(arguments)
    return run_benchmark(
        SECTION,
        options,
        lambda: measure(chosen(options, Settings(), QUICK)),
        loss_tables,
        lambda results: write_section(SECTION, loss_tables(results)),
    )


if __name__ == "__main__":
    sys.exit(main())
