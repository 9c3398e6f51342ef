"""The exponentiated loss beside simpler ways and rivals' losses: `python -m benchmarks.loss`, or `make bench`.

A cell is a size of batch and a code length; in each, all losses take turns.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils.benchmark import Timer

from benchmarks import measuring
from benchmarks.documents import Benchmark, Results, Rows, Settings
from benchmarks.measuring import Method, Timing
from benchmarks.processes import MEBIBYTE, first_call_rows, first_calls, in_new_process
from benchmarks.rival_losses import CLASSES, LOSSES, fused, gradient_of, random_batch
from deephash_pipeline.devices import freed_memory_is_kept
from deephash_pipeline.progress import track

# Names of methods in the results, besides those of `rival_losses`.
CLOCK = "clock"
OURS, OURS_TWO_THREADS = "fused", "fused, two threads"
# A measurement lasts about so long, though one call may take a fraction of a millisecond.
SECONDS_OF_A_MEASUREMENT = 0.2
# Those that compute the same loss agree to so much of the largest gradient.
AGREEMENT = 1e-4
SAME_LOSS = ("tiles", "naive", "bit by bit")
AIM_SIZE, AIMS = (2048, 48), {"naive": 100.0, "bit by bit": 40.0, "DPSH": 1.0}
DEVICE_BATCH, DEVICE_CODE_LENGTH, DEVICE_CALLS, DEVICE_AIM = 16_384, 48, 20, 4.0
# What a multiprocessor of an NVIDIA GPU starts in a cycle, and what one bit of one pair takes of it.
SPECIAL_FUNCTIONS_PER_CYCLE, SPECIAL_FUNCTIONS = 16, 2
FLOATS_PER_CYCLE, FLOATS = 128, 12

Cell = dict[str, Any]


def measure_cell(batch: int, code_length: int, rounds: int) -> Cell:
    """Time all losses on one batch, and measure the memory of each in a process of its own.

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
        "clock_hertz": measuring.CHAIN_CYCLES / timings.pop(CLOCK).cpu_seconds,
        "seconds": {name: timings[name].seconds() for name in runs},
        "seconds_in_kept_memory": {name: timings_in_kept_memory[name].seconds() for name in runs},
        "mebibytes": {
            name: in_new_process("-m", "benchmarks.rival_losses", name, batch, code_length) for name in LOSSES
        },
    }


def _interleaved(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Timing]:
    methods = [Method(name, run, measuring.calls_lasting(run, SECONDS_OF_A_MEASUREMENT)) for name, run in runs.items()]
    return measuring.interleaved([Method(CLOCK, measuring.run_clock_chain), *methods], rounds)


def measure_device() -> dict[str, Any] | None:
    """Time the kernel on a CUDA device at a large batch; None without one."""
    if not torch.cuda.is_available():
        return None
    u, labels = random_batch(DEVICE_BATCH, DEVICE_CODE_LENGTH, CLASSES)
    u, labels = u.detach().cuda().requires_grad_(), labels.cuda()
    run = partial(gradient_of, fused, u, labels)
    run()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    seconds = [Timer("run()", globals={"run": run}).timeit(1).mean for _ in range(DEVICE_CALLS)]
    properties = torch.cuda.get_device_properties(0)
    return {
        "name": properties.name,
        "processors": properties.multi_processor_count,
        "clock_hertz": 1e3 * properties.clock_rate,
        "batch": DEVICE_BATCH,
        "code_length": DEVICE_CODE_LENGTH,
        "seconds": median(seconds),
        "mebibytes": (torch.cuda.max_memory_allocated() - before) / MEBIBYTE,
    }


def measure(settings: Settings) -> Results:
    """Measure all cells."""
    measuring.use_one_thread()
    # PyTorch's own first gradient, that of the tiles, comes before ours, so that it is not counted with it.
    calls = {name: f"gradient_of(LOSSES[{name!r}], *random_batch(40, 12, 2))" for name in ("tiles", OURS)}
    first = first_calls({"imports": "from benchmarks.rival_losses import LOSSES, gradient_of, random_batch", **calls})
    measuring.run_clock_chain()
    sizes = list(product(settings["batches"], settings["code_lengths"]))
    cells = [measure_cell(*size, settings["rounds"]) for size in track(sizes, "loss", len(sizes))]
    return {"first_calls": first, "cells": cells, "device": measure_device()}


def tables(results: Results) -> dict[str, Rows | str]:
    """Rows of the tables of the document."""
    cells = results["cells"]
    aims = [row for cell in cells if (cell["batch"], cell["code_length"]) == AIM_SIZE for row in _aims(cell)]
    return {
        "aims": aims or "Not measured at the size of the aims.",
        "times": [_times(cell, "seconds") for cell in cells],
        "times in kept memory": [_times(cell, "seconds_in_kept_memory") for cell in cells],
        "memory": [
            _size(cell) | {f"`{name}`": _rounded(mebibytes) for name, mebibytes in cell["mebibytes"].items()}
            for cell in cells
        ],
        "own": [_own(cell) for cell in cells],
        "first calls": first_call_rows(results["first_calls"], digits=2),
        "device": [_device(results["device"])] if results["device"] else "Not measured: no CUDA device.",
    }


def _aims(cell: Cell) -> list[dict[str, str]]:
    return [
        {
            "ratio": f"`{name}` / `{OURS}`",
            "aim": f"at least {aim:g}",
            "measured": f"{_ratio(cell, name):.1f}",
            "": "reached" if _ratio(cell, name) >= aim else "missed",
            "in kept memory": f"{_ratio(cell, name, 'seconds_in_kept_memory'):.1f}",
        }
        for name, aim in AIMS.items()
    ]


def _times(cell: Cell, seconds: str) -> dict[str, str]:
    row = _size(cell)
    for name in cell[seconds]:
        if name != OURS_TWO_THREADS:
            times_ours = f" ({_rounded(_ratio(cell, name, seconds))})" if name != OURS else ""
            row[f"`{name}`"] = _rounded(1e3 * cell[seconds][name]["cpu"]) + times_ours
    return row


def _own(cell: Cell) -> dict[str, str]:
    seconds, bits_of_pairs = cell["seconds"], cell["batch"] * (cell["batch"] - 1) / 2 * cell["code_length"]
    two_threads = seconds.get(OURS_TWO_THREADS)
    return _size(cell) | {
        "cycles": f"{seconds[OURS]['cpu'] * cell['clock_hertz'] / bits_of_pairs:.2f}",
        "one thread / two threads": f"{seconds[OURS]['wall'] / two_threads['wall']:.2f}" if two_threads else "",
    }


def device_floor(batch: int, code_length: int, processors: int, clock_hertz: float) -> float:
    """Seconds of the arithmetic alone on a GPU: the slower of special functions and of other operations."""
    bits_of_pairs = batch * (batch - 1) / 2 * code_length
    cycles = max(SPECIAL_FUNCTIONS / SPECIAL_FUNCTIONS_PER_CYCLE, FLOATS / FLOATS_PER_CYCLE)
    return bits_of_pairs * cycles / (processors * clock_hertz)


def _device(device: dict[str, Any]) -> dict[str, str]:
    floor = device_floor(device["batch"], device["code_length"], device["processors"], device["clock_hertz"])
    ratio = device["seconds"] / floor
    return (
        {"device": device["name"]}
        | _size(device)
        | {
            "ms": f"{1e3 * device['seconds']:.2f}",
            "floor, ms": f"{1e3 * floor:.2f}",
            "ratio": f"{ratio:.1f} ({'reached' if ratio <= DEVICE_AIM else 'missed'}: at most {DEVICE_AIM:g})",
            "MiB": f"{device['mebibytes']:.0f}",
        }
    )


def _size(cell: Cell) -> dict[str, str]:
    return {"samples": f"{cell['batch']:,}", "bits": str(cell["code_length"])}


def _ratio(cell: Cell, name: str, seconds: str = "seconds") -> float:
    return float(cell[seconds][name]["cpu"] / cell[seconds][OURS]["cpu"])


def _rounded(number: float) -> str:
    """Three digits, or all those before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.{1 if number >= 10 else 2}f}"


LOSS = Benchmark(
    "loss",
    measure,
    tables,
    settings={"batches": (128, 512, 2048), "code_lengths": (12, 48), "rounds": 5},
    quick={"batches": (128, 512), "rounds": 3},
)

if __name__ == "__main__":
    sys.exit(LOSS.main(__doc__))
