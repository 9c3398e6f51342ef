"""The exponentiated loss beside simpler ways and rivals' losses: `python -m benchmarks.loss`, or `make bench`."""

import os
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median
from typing import Any

import torch
from torch.utils.benchmark import Timer

from benchmarks import measuring
from benchmarks.documents import Benchmark, Results, Rows, Settings, rows_by
from benchmarks.measuring import Method, Timing
from benchmarks.processes import MEBIBYTE, first_call_rows, first_calls, in_new_process
from benchmarks.rival_losses import CLASSES, LOSSES, fused, gradient_of, random_batch
from deephash_pipeline.common.devices import freed_memory_is_kept
from deephash_pipeline.common.progress import track

# Names of methods in the results, besides those of `rival_losses`.
CLOCK = "clock"
OURS, OURS_TWO_THREADS = "fused", "fused, two threads"
# A measurement lasts about so long, though one call may take a fraction of a millisecond.
SECONDS_OF_A_MEASUREMENT = 0.2
# Those that compute the same loss agree to so much of the largest gradient.
AGREEMENT = 1e-4
SAME_LOSS = ("tiles", "naive", "bit by bit")
AIM_SIZE, AIMS = (2048, 48), {"naive": 100.0, "bit by bit": 40.0, "DPSH": 1.0}
DEVICE_SIZE, DEVICE_CALLS, DEVICE_AIM = (16_384, 48), 20, 4.0
# What one bit of one pair takes of what a multiprocessor of an NVIDIA GPU starts in a cycle: special functions, others.
DEVICE_CYCLES = max(2 / 16, 12 / 128)

Cell = dict[str, Any]


def measure_cell(batch: int, code_length: int, rounds: int) -> Cell:
    """Time all losses on one batch, and measure the memory of each in a process of its own."""
    u, labels = random_batch(batch, code_length, CLASSES)

    def on_two_threads() -> None:
        torch.set_num_threads(2)
        gradient_of(fused, u, labels)
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
            name: in_new_process("benchmarks.rival_losses:added_mebibytes", name, batch, code_length) for name in LOSSES
        },
    }


def _interleaved(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Timing]:
    methods = [Method(name, run, measuring.calls_lasting(run, SECONDS_OF_A_MEASUREMENT)) for name, run in runs.items()]
    return measuring.interleaved([Method(CLOCK, measuring.run_clock_chain), *methods], rounds)


def measure_device() -> dict[str, Any] | None:
    """Time the kernel on a CUDA device at a large batch; None without one."""
    if not torch.cuda.is_available():
        return None
    u, labels = random_batch(*DEVICE_SIZE, CLASSES)
    u, labels = u.detach().cuda().requires_grad_(), labels.cuda()
    run = partial(gradient_of, fused, u, labels)
    run()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    seconds = [Timer("run()", globals={"run": run}).timeit(1).mean for _ in range(DEVICE_CALLS)]
    properties = torch.cuda.get_device_properties(0)
    mebibytes = (torch.cuda.max_memory_allocated() - before) / MEBIBYTE
    size = {"batch": DEVICE_SIZE[0], "code_length": DEVICE_SIZE[1], "seconds": median(seconds), "mebibytes": mebibytes}
    processors, hertz = properties.multi_processor_count, 1e3 * properties.clock_rate
    return {"name": properties.name, "processors": processors, "clock_hertz": hertz, **size}


def _measure(settings: Settings) -> Results:
    measuring.use_one_thread()
    # PyTorch's own first gradient, that of the tiles, comes before ours, so that it is not counted with it.
    calls = {name: f"gradient_of(LOSSES[{name!r}], *random_batch(40, 12, 2))" for name in ("tiles", OURS)}
    first = first_calls({"imports": "from benchmarks.rival_losses import LOSSES, gradient_of, random_batch", **calls})
    measuring.run_clock_chain()
    sizes = list(product(settings["batches"], settings["code_lengths"]))
    cells = [measure_cell(*size, settings["rounds"]) for size in track(sizes, "loss", len(sizes))]
    found = tables({"first_calls": first, "cells": cells, "device": measure_device()})
    return {"tables": found, "note": measuring.describe_cells(cells)}


SIZE = "samples: {batch:,} | bits: {code_length} | "
AIM = (
    "ratio: `{name}` / `fused` | aim: at least {aim:g} | measured: {by:.1f} | : {reached} | in kept memory: {kept:.1f}"
)
DEVICE = (
    "ms: {ms:.2f} | floor, ms: {floor_ms:.2f} | ratio: {ratio:.1f} ({reached}: at most {aim:g}) | MiB: {mebibytes:.0f}"
)


def tables(results: Results) -> dict[str, Rows | str]:
    """Rows of the tables of the document."""
    aims, device = [], results["device"]
    rows: dict[str, list[dict[str, str]]] = {"times": [], "times in kept memory": [], "memory": [], "own": []}
    for cell in results["cells"]:
        (size,) = rows_by(SIZE.removesuffix(" | "), [cell])
        seconds, kept = cell["seconds"], cell["seconds_in_kept_memory"]
        for name, aim in AIMS.items() if (cell["batch"], cell["code_length"]) == AIM_SIZE else ():
            by, by_kept = (of[name]["cpu"] / of[OURS]["cpu"] for of in (seconds, kept))
            reached = "reached" if by >= aim else "missed"
            aims.append({"name": name, "aim": aim, "by": by, "reached": reached, "kept": by_kept})
        for table, of in (("times", seconds), ("times in kept memory", kept)):
            times = {name: _rounded(1e3 * taken["cpu"]) for name, taken in of.items() if name != OURS_TWO_THREADS}
            ratios = {name: f" ({_rounded(of[name]['cpu'] / of[OURS]['cpu'])})" for name in times} | {OURS: ""}
            rows[table].append(size | {f"`{name}`": taken + ratios[name] for name, taken in times.items()})
        rows["memory"].append(size | {f"`{name}`": _rounded(taken) for name, taken in cell["mebibytes"].items()})
        cycles = seconds[OURS]["cpu"] * cell["clock_hertz"] / _bits_of_pairs(cell)
        two_threads = seconds.get(OURS_TWO_THREADS)
        gain = f"{seconds[OURS]['wall'] / two_threads['wall']:.2f}" if two_threads else ""
        rows["own"].append(size | {"cycles": f"{cycles:.2f}", "one thread / two threads": gain})
    if device:
        # Seconds of the arithmetic alone.
        floor = _bits_of_pairs(device) * DEVICE_CYCLES / (device["processors"] * device["clock_hertz"])
        ratio = device["seconds"] / floor
        shown = {"ms": 1e3 * device["seconds"], "floor_ms": 1e3 * floor, "ratio": ratio, "aim": DEVICE_AIM}
        device |= {**shown, "reached": "reached" if ratio <= DEVICE_AIM else "missed"}
    return {
        "aims": rows_by(AIM, aims) if aims else "Not measured at the size of the aims.",
        **rows,
        "first calls": first_call_rows(results["first_calls"], digits=2),
        "device": rows_by(f"device: {{name}} | {SIZE}{DEVICE}", [device])
        if device
        else "Not measured: no CUDA device.",
    }


def _bits_of_pairs(cell: Cell) -> float:
    return float(cell["batch"] * (cell["batch"] - 1) / 2 * cell["code_length"])


def _rounded(number: float) -> str:
    """Three digits, or all those before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.{1 if number >= 10 else 2}f}"


LOSS = Benchmark(
    "loss",
    _measure,
    settings={"batches": (128, 512, 2048), "code_lengths": (12, 48), "rounds": 5},
    quick={"batches": (128, 512), "rounds": 3},
)

if __name__ == "__main__":
    sys.exit(LOSS.main(__doc__))
