"""Evaluation beside its rivals on sets of codes, the cells: `python -m benchmarks.evaluation`, or `make bench`."""

import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
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
from deephash_pipeline.common.progress import track
from deephash_pipeline.retrieval import average_precision, average_precision_bounds, count_distances, distinct_codes

# Names of methods in the results, besides those of the rivals.
CLOCK, TWO_THREADS = "clock", ", two threads"
OURS, COUNTING, WITHOUT_COMPILER = "ours", "counting", "without a compiler"
# A measurement of our own methods lasts about so long, though one call may take milliseconds.
SECONDS_OF_A_MEASUREMENT = 0.3
# Operations of bit-sliced counting in 512-bit registers at four a cycle: processor cycles for a query and an item.
FLOOR_CYCLES_PER_PAIR = {12: 0.031, 24: 0.063, 32: 0.086, 48: 0.127, 64: 0.172}
FLOOR_AIM_LENGTH = 48
OWN = {"counting": COUNTING, "whole": OURS}
NOT_ON_THE_PACKAGE_INDEX = ("argsort loop",)
IMPORTS = "import numpy as np; from deephash_pipeline.retrieval import count_distances"

Cell = dict[str, Any]


def measure_cell(
    codes: str, classes: int, code_length: int, settings: Settings, rivals: Sequence[Rival] = RIVALS
) -> Cell:
    """Time all methods on one set of codes, rivals on the first of its queries, and compare their metrics."""
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
    clock = Method(CLOCK, measuring.run_clock_chain)
    timings = measuring.interleaved([clock, *full, *partial], rounds=settings["rounds"])
    numba.set_num_threads(1)

    exact = timings[OURS].result
    if not np.array_equal(exact, timings[WITHOUT_COMPILER].result, equal_nan=True):
        raise RuntimeError(f"two exact counts differ for {codes} codes of {code_length} bits")
    optimistic, pessimistic = average_precision_bounds(count_distances(*subset))
    queries_of = dict.fromkeys((method.name for method in full), len(drawn.query_codes))
    queries_of |= dict.fromkeys((method.name for method in partial), len(subset.query_codes))
    sizes = {"queries": settings["queries"], "items": settings["items"]}
    return {
        **{"codes": codes, "classes": classes, "code_length": code_length, **sizes},
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
    few = "[np.zeros((2048, {0} + 7 >> 3), np.uint8), np.zeros(2048, np.int64)]"
    counts = {f"{bits} bits": f"count_distances(*2 * {few}, {{0}})".format(bits) for bits in settings["code_lengths"]}
    first = first_calls({"imports": IMPORTS, **counts})
    # Every method once on little, so that no import and no compilation is timed with the first cell.
    measuring.run_clock_chain()
    measure_cell(RANDOM, 2, 16, {"queries": 2, "items": 100, "rival_queries": 2, "rounds": 1})
    measuring.use_one_thread()
    cells = list(product(settings["kinds"], settings["code_lengths"]))
    measured = [measure_cell(*kind, length, settings) for kind, length in track(cells, "evaluation", len(cells))]
    found = tables({"first_calls": first, "cells": measured})
    return {"tables": found, "note": measuring.describe_cells(measured)}


def tables(results: Results) -> dict[str, Rows]:
    """Rows of the tables of the document."""
    rows: dict[str, list[dict[str, Any]]] = {"rivals": [], "own": [], "metrics": []}
    aims: defaultdict[tuple[str, str, float], list[tuple[float, Cell]]] = defaultdict(list)
    for cell in results["cells"]:
        seconds = {name: taken["cpu"] * cell["queries"] / taken["queries"] for name, taken in cell["seconds"].items()}
        wall = {name: taken["wall"] for name, taken in cell["seconds"].items()}
        metrics = cell["mean_average_precision"]
        ours = {name: taken / seconds[OURS] for name, taken in seconds.items()}
        gains = {name: wall[own] / wall[own + TWO_THREADS] for name, own in OWN.items() if own + TWO_THREADS in wall}
        cycles = FLOOR_CYCLES_PER_PAIR.get(cell["code_length"])
        floor = cycles * cell["queries"] * cell["items"] / cell["clock_hertz"] if cycles else None
        floors = {name: seconds[own] / floor for name, own in OWN.items()} if floor else {}
        for name in (name for name in metrics["rivals"] if name not in NOT_ON_THE_PACKAGE_INDEX):
            aims[f"`{name}` / ours", "least", 300].append((ours[name], cell))
        aims[f"{WITHOUT_COMPILER} / ours", "least", 8].append((ours[WITHOUT_COMPILER], cell))
        for name, gain in gains.items():
            aims[f"one thread / two threads, {name}", "least", 1.8].append((gain, cell))
        for name, times in floors.items() if cell["code_length"] == FLOOR_AIM_LENGTH else ():
            aims[f"{name} / floor, {FLOOR_AIM_LENGTH} bits", "most", 3].append((times, cell))
        named = {"codes": cell["codes"], "classes": cell["classes"], "bits": cell["code_length"]}
        of_rivals = {name: f"{seconds[name]:.1f} ({ours[name]:,.0f})" for name in metrics["rivals"]}
        rows["rivals"].append({**named, OURS: f"{seconds[OURS]:.3f}", **of_rivals})
        own_row = {**named, "distinct codes": f"{cell['distinct_codes']:,}"}
        own_row |= {f"{name}, s": f"{seconds[own]:.3f}" for name, own in OWN.items()}
        without = f"{seconds[WITHOUT_COMPILER]:.2f} ({ours[WITHOUT_COMPILER]:.1f})"
        own_row |= {"without a compiler, s (ratio)": without, "floor, s": f"{floor:.4f}" if floor else ""}
        own_row |= {f"{name} / floor": f"{floors[name]:.1f}" if floors else "" for name in OWN}
        own_row |= {f"two threads, {name}": f"{gains[name]:.2f}" if gains else "" for name in OWN}
        rows["own"].append(own_row)
        orders = {"expectation": "expectation", "best order": "optimistic", "worst order": "pessimistic"}
        columns = {shown: metrics[name] for shown, name in orders.items()} | metrics["rivals"]
        rows["metrics"].append({**named, **{name: f"{metric:.5f}" for name, metric in columns.items()}})
    first = [{**seconds, "together": sum(seconds.values())} for seconds in results["first_calls"]]
    return {"aims": list(_aims(aims)), **rows, "first calls": first_call_rows(first, digits=3)}


def _aims(aims: Mapping[tuple[str, str, float], Sequence[tuple[float, Cell]]]) -> Rows:
    for (what, least, aim), cells in aims.items():
        ratio, worst = (min if least == "least" else max)(cells, key=itemgetter(0))
        yield {
            "ratio": what,
            "aim": f"at {least} {aim:g}",
            "worst": f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.2f}",
            "where": f"{worst['codes']}, {worst['classes']} classes, {worst['code_length']} bits",
            "": "reached" if (ratio >= aim if least == "least" else ratio <= aim) else "missed",
        }


EVALUATION = Benchmark(
    "evaluation",
    _measure,
    settings={"code_lengths": (12, 24, 48, 64), "kinds": tuple(product((RANDOM, TRAINED), (10, 397)))}
    | {"queries": 10_000, "items": 50_000, "rival_queries": 40, "rounds": 5},
    quick={"code_lengths": (12, 48), "kinds": ((RANDOM, 10), (TRAINED, 397)), "rival_queries": 10, "rounds": 3},
    distributions=("numpy", "numba", "torch", "scikit-learn", "torchmetrics", "pytorch-metric-learning", "faiss-cpu"),
)

if __name__ == "__main__":
    sys.exit(EVALUATION.main(__doc__))
