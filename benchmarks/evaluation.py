"""Evaluation beside its rivals: `python -m benchmarks.evaluation`, or `make bench`.

A cell is a set of codes; in each, all methods take turns.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numba
import numpy as np

from benchmarks import measuring
from benchmarks.codes import RANDOM, TRAINED, first_queries, synthetic_codes
from benchmarks.documents import Benchmark, Results, Rows, Settings
from benchmarks.measuring import Method
from benchmarks.processes import first_call_rows, first_calls
from benchmarks.rivals import RIVALS, Rival, count_without_compiler
from deephash_pipeline.progress import track
from deephash_pipeline.retrieval import average_precision, average_precision_bounds, count_distances, distinct_codes

# Names of methods in the results, besides those of the rivals.
CLOCK, TWO_THREADS = "clock", ", two threads"
OURS, COUNTING, WITHOUT_COMPILER = "ours", "counting", "without a compiler"
# A measurement of our own methods lasts about so long, though one call may take milliseconds.
SECONDS_OF_A_MEASUREMENT = 0.3
# Operations of bit-sliced counting in 512-bit registers at four a cycle: processor cycles for a query and an item.
FLOOR_CYCLES_PER_PAIR = {12: 0.031, 24: 0.063, 32: 0.086, 48: 0.127, 64: 0.172}
FLOOR_AIM_LENGTH, FLOOR_AIM, RIVAL_AIM, COMPILER_AIM, THREADS_AIM = 48, 3, 300, 8, 1.8
NOT_ON_THE_PACKAGE_INDEX = ("argsort loop",)
IMPORTS = "import numpy as np; from deephash_pipeline.retrieval import count_distances"

Cell = dict[str, Any]


def measure_cell(
    codes: str, classes: int, code_length: int, settings: Settings, rivals: Sequence[Rival] = RIVALS
) -> Cell:
    """Time all methods on one set of codes, rivals on the first of its queries, and compare their metrics.

    Raises:
        RuntimeError: if the histograms of the two exact ways differ.
    """
    drawn = synthetic_codes(codes, classes, code_length, settings["queries"], settings["items"])
    subset = first_queries(drawn, settings["rival_queries"])

    def count(threads: int) -> Any:
        numba.set_num_threads(threads)
        return count_distances(*drawn)

    own: dict[str, Callable[[], Any]] = {COUNTING: lambda: count(1), OURS: lambda: average_precision(count(1))}
    if numba.config.NUMBA_NUM_THREADS > 1:
        own |= {COUNTING + TWO_THREADS: lambda: count(2), OURS + TWO_THREADS: lambda: average_precision(count(2))}
    full = [Method(name, run, measuring.calls_lasting(run, SECONDS_OF_A_MEASUREMENT)) for name, run in own.items()]
    full.append(Method(WITHOUT_COMPILER, lambda: average_precision(count_without_compiler(drawn))))
    partial = [Method(rival.name, rival.prepare(subset)) for rival in rivals]
    timings = measuring.interleaved(
        [Method(CLOCK, measuring.run_clock_chain), *full, *partial], rounds=settings["rounds"]
    )
    numba.set_num_threads(1)

    exact = timings[OURS].result
    if not np.array_equal(exact, timings[WITHOUT_COMPILER].result, equal_nan=True):
        raise RuntimeError(f"two exact counts differ for {codes} codes of {code_length} bits")
    optimistic, pessimistic = average_precision_bounds(count_distances(*subset))
    queries_of = dict.fromkeys((method.name for method in full), len(drawn.query_codes))
    queries_of |= dict.fromkeys((method.name for method in partial), len(subset.query_codes))
    return {
        "codes": codes,
        "classes": classes,
        "code_length": code_length,
        "queries": len(drawn.query_codes),
        "items": len(drawn.database_codes),
        "distinct_codes": distinct_codes(drawn.database_codes),
        "clock_hertz": measuring.CHAIN_CYCLES / timings[CLOCK].cpu_seconds,
        "seconds": {name: {**timings[name].seconds(), "queries": queries} for name, queries in queries_of.items()},
        "mean_average_precision": {
            "queries": len(subset.query_codes),
            "expectation": float(np.nanmean(exact[: len(subset.query_codes)])),
            "optimistic": float(np.nanmean(optimistic)),
            "pessimistic": float(np.nanmean(pessimistic)),
            "rivals": {rival.name: timings[rival.name].result for rival in rivals},
        },
    }


def measure(settings: Settings) -> Results:
    """Measure all cells."""
    measuring.require_packages(rival.package for rival in RIVALS if rival.package)
    few = "[np.zeros((2048, {0} + 7 >> 3), np.uint8), np.zeros(2048, np.int64)]"
    counts = {f"{bits} bits": f"count_distances(*2 * {few}, {{0}})".format(bits) for bits in settings["code_lengths"]}
    first = first_calls({"imports": IMPORTS, **counts})
    # Every method once on little, so that no import and no compilation is timed with the first cell.
    measuring.run_clock_chain()
    measure_cell(RANDOM, 2, 16, {"queries": 2, "items": 100, "rival_queries": 2, "rounds": 1})
    measuring.use_one_thread()
    cells = list(product(settings["kinds"], settings["code_lengths"]))
    return {
        "first_calls": first,
        "cells": [measure_cell(*kind, length, settings) for kind, length in track(cells, "evaluation", len(cells))],
    }


def tables(results: Results) -> dict[str, Rows]:
    """Rows of the tables of the document."""
    cells = results["cells"]
    rivals = list(cells[0]["mean_average_precision"]["rivals"])
    return {
        "aims": _aims(cells, rivals),
        "rivals": (
            _named(cell, {OURS: f"{_seconds(cell, OURS):.3f}"})
            | {rival: f"{_seconds(cell, rival):.1f} ({_to_ours(rival)(cell):,.0f})" for rival in rivals}
            for cell in cells
        ),
        "own": map(_own, cells),
        "metrics": map(_metrics, cells),
        "first calls": first_call_rows(
            [{**seconds, "together": sum(seconds.values())} for seconds in results["first_calls"]], digits=3
        ),
    }


def _aims(cells: list[Cell], rivals: list[str]) -> Iterator[dict[str, str]]:
    of_length = [cell for cell in cells if cell["code_length"] == FLOOR_AIM_LENGTH]
    two_threads = [cell for cell in cells if OURS + TWO_THREADS in cell["seconds"]]
    compared = [name for name in rivals if name not in NOT_ON_THE_PACKAGE_INDEX]
    aims: list[tuple[str, Callable[[Cell], float], float, list[Cell]]] = [
        *((f"`{name}` / ours", _to_ours(name), RIVAL_AIM, cells) for name in compared),
        (f"{WITHOUT_COMPILER} / ours", _to_ours(WITHOUT_COMPILER), COMPILER_AIM, cells),
        *((f"one thread / two threads, {name}", _gain(own), THREADS_AIM, two_threads) for name, own in OWN.items()),
    ]
    for what, ratio, aim, of in aims:
        if of:
            worst = min(of, key=ratio)
            yield _aim(what, f"at least {aim:g}", ratio(worst), worst, ratio(worst) >= aim)
    for name, own in OWN.items() if of_length else ():
        worst = max(of_length, key=_floors(own))
        times = _floors(own)(worst)
        yield _aim(f"{name} / floor, {FLOOR_AIM_LENGTH} bits", f"at most {FLOOR_AIM}", times, worst, times <= FLOOR_AIM)


def _aim(what: str, aim: str, times: float, worst: Cell, reached: bool) -> dict[str, str]:
    return {
        "ratio": what,
        "aim": aim,
        "worst": f"{times:,.0f}" if times >= 100 else f"{times:.2f}",
        "where": f"{worst['codes']}, {worst['classes']} classes, {worst['code_length']} bits",
        "": "reached" if reached else "missed",
    }


def _own(cell: Cell) -> dict[str, Any]:
    columns = {
        "distinct codes": f"{cell['distinct_codes']:,}",
        "counting, s": f"{_seconds(cell, COUNTING):.3f}",
        "whole, s": f"{_seconds(cell, OURS):.3f}",
        "without a compiler, s (ratio)": f"{_seconds(cell, WITHOUT_COMPILER):.2f} "
        f"({_to_ours(WITHOUT_COMPILER)(cell):.1f})",
        "floor, s": f"{_floor(cell):.4f}",
        **{f"{name} / floor": f"{_floors(own)(cell):.1f}" for name, own in OWN.items()},
        **{f"two threads, {name}": f"{_gain(own)(cell):.2f}" for name, own in OWN.items()},
    }
    return _named(cell, columns)


def _metrics(cell: Cell) -> dict[str, Any]:
    metrics = cell["mean_average_precision"]
    names = {"expectation": "expectation", "best order": "optimistic", "worst order": "pessimistic"}
    columns = {shown: metrics[name] for shown, name in names.items()} | metrics["rivals"]
    return _named(cell, {name: f"{metric:.5f}" for name, metric in columns.items()})


def _named(cell: Cell, columns: dict[str, str]) -> dict[str, Any]:
    return {"codes": cell["codes"], "classes": cell["classes"], "bits": cell["code_length"], **columns}


OWN = {"counting": COUNTING, "whole": OURS}
"""What tables call our own methods."""


def _seconds(cell: Cell, method: str) -> float:
    """CPU seconds for all queries of the cell."""
    measured = cell["seconds"][method]
    return float(measured["cpu"] * cell["queries"] / measured["queries"])


def _to_ours(method: str) -> Callable[[Cell], float]:
    return lambda cell: _seconds(cell, method) / _seconds(cell, OURS)


def _gain(method: str) -> Callable[[Cell], float]:
    """How much faster two threads are; nan where there is one core."""
    nothing = {"wall": np.nan}
    return lambda cell: float(
        cell["seconds"][method]["wall"] / cell["seconds"].get(method + TWO_THREADS, nothing)["wall"]
    )


def _floor(cell: Cell) -> float:
    """Seconds of the least that counting takes; nan for lengths that it was not worked out for."""
    cycles = FLOOR_CYCLES_PER_PAIR.get(cell["code_length"], np.nan)
    return float(cycles * cell["queries"] * cell["items"] / cell["clock_hertz"])


def _floors(method: str) -> Callable[[Cell], float]:
    return lambda cell: _seconds(cell, method) / _floor(cell)


EVALUATION = Benchmark(
    "evaluation",
    measure,
    tables,
    settings={
        "code_lengths": (12, 24, 48, 64),
        "kinds": tuple(product((RANDOM, TRAINED), (10, 397))),
        "queries": 10_000,
        "items": 50_000,
        "rival_queries": 40,
        "rounds": 5,
    },
    quick={"code_lengths": (12, 48), "kinds": ((RANDOM, 10), (TRAINED, 397)), "rival_queries": 10, "rounds": 3},
    distributions=("numpy", "numba", "torch", "scikit-learn", "torchmetrics", "pytorch-metric-learning", "faiss-cpu"),
)

if __name__ == "__main__":
    sys.exit(EVALUATION.main(__doc__))
