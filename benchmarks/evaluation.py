"""Evaluation beside its rivals: `python -m benchmarks.evaluation`, or `make bench`.

A cell is a set of codes; in each, all methods take turns.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from operator import itemgetter
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
FLOOR_AIM_LENGTH = 48
AIMS = {" / floor": 3, "one thread / two threads": 1.8, "without a compiler / ours": 8, " / ours": 300}
OWN = {"counting": COUNTING, "whole": OURS}
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


def _measure(settings: Settings) -> Results:
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
    first = [{**seconds, "together": sum(seconds.values())} for seconds in results["first_calls"]]
    return {
        "aims": _aims(cells),
        "rivals": [_named(cell) | _rivals(cell) for cell in cells],
        "own": [_named(cell) | _own(cell) for cell in cells],
        "metrics": [_named(cell) | _metrics(cell) for cell in cells],
        "first calls": first_call_rows(first, digits=3),
    }


def _ratios(cell: Cell) -> dict[str, float]:
    """What aims are set for: times of ours, gain of a second thread, and times of the floor."""
    seconds, wall = _seconds(cell), {name: measured["wall"] for name, measured in cell["seconds"].items()}
    rivals = [name for name in cell["mean_average_precision"]["rivals"] if name not in NOT_ON_THE_PACKAGE_INDEX]
    found = {f"`{name}` / ours": seconds[name] / seconds[OURS] for name in rivals}
    found["without a compiler / ours"] = seconds[WITHOUT_COMPILER] / seconds[OURS]
    for name, own in OWN.items():
        if own + TWO_THREADS in wall:
            found[f"one thread / two threads, {name}"] = wall[own] / wall[own + TWO_THREADS]
    for name, own in OWN.items():
        if cell["code_length"] in FLOOR_CYCLES_PER_PAIR:
            found[f"{name} / floor"] = seconds[own] / _floor(cell)
    return found


def _aims(cells: list[Cell]) -> Iterator[dict[str, str]]:
    of_aims = [(cell, _ratios(cell)) for cell in cells]
    for what in dict.fromkeys(name for _, ratios in of_aims for name in ratios):
        at_most = what.endswith(" / floor")
        aim = next(aim for part, aim in AIMS.items() if part in what)
        lengths = (FLOOR_AIM_LENGTH,) if at_most else tuple(cell["code_length"] for cell in cells)
        found = [(ratios[what], cell) for cell, ratios in of_aims if what in ratios and cell["code_length"] in lengths]
        if found:
            ratio, worst = (max if at_most else min)(found, key=itemgetter(0))
            yield {
                "ratio": f"{what}, {FLOOR_AIM_LENGTH} bits" if at_most else what,
                "aim": f"at {'most' if at_most else 'least'} {aim:g}",
                "worst": f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2f}",
                "where": f"{worst['codes']}, {worst['classes']} classes, {worst['code_length']} bits",
                "": "reached" if (ratio <= aim if at_most else ratio >= aim) else "missed",
            }


def _named(cell: Cell) -> dict[str, Any]:
    return {"codes": cell["codes"], "classes": cell["classes"], "bits": cell["code_length"]}


def _rivals(cell: Cell) -> dict[str, str]:
    seconds, rivals = _seconds(cell), cell["mean_average_precision"]["rivals"]
    times = {name: f"{seconds[name]:.1f} ({seconds[name] / seconds[OURS]:,.0f})" for name in rivals}
    return {OURS: f"{seconds[OURS]:.3f}", **times}


def _own(cell: Cell) -> dict[str, str]:
    seconds, ratios = _seconds(cell), _ratios(cell)
    without = f"{seconds[WITHOUT_COMPILER]:.2f} ({ratios['without a compiler / ours']:.1f})"
    floors = {what: f"{ratios[what]:.1f}" if what in ratios else "" for what in (f"{name} / floor" for name in OWN)}
    gains = {f"two threads, {name}": ratios.get(f"one thread / two threads, {name}") for name in OWN}
    return {
        "distinct codes": f"{cell['distinct_codes']:,}",
        **{f"{name}, s": f"{seconds[own]:.3f}" for name, own in OWN.items()},
        "without a compiler, s (ratio)": without,
        "floor, s": f"{_floor(cell):.4f}" if cell["code_length"] in FLOOR_CYCLES_PER_PAIR else "",
        **floors,
        **{name: f"{gain:.2f}" if gain else "" for name, gain in gains.items()},
    }


def _metrics(cell: Cell) -> dict[str, str]:
    metrics = cell["mean_average_precision"]
    names = {"expectation": "expectation", "best order": "optimistic", "worst order": "pessimistic"}
    columns = {shown: metrics[name] for shown, name in names.items()} | metrics["rivals"]
    return {name: f"{metric:.5f}" for name, metric in columns.items()}


def _seconds(cell: Cell) -> dict[str, float]:
    """CPU seconds of each method for all queries of the cell."""
    return {name: taken["cpu"] * cell["queries"] / taken["queries"] for name, taken in cell["seconds"].items()}


def _floor(cell: Cell) -> float:
    pairs = cell["queries"] * cell["items"]
    return float(FLOOR_CYCLES_PER_PAIR[cell["code_length"]] * pairs / cell["clock_hertz"])


EVALUATION = Benchmark(
    "evaluation",
    _measure,
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
