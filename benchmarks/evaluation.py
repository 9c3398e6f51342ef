"""Evaluation beside its rivals: `python -m benchmarks.evaluation`, or `make bench`.

Every cell is a set of codes; in each, all methods take turns. Results go to `benchmarks/results/evaluation.json`, and
from there into the tables of `docs/performance.md`.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.codes import RANDOM, TRAINED, CodeBenchmark, saved_codes, synthetic_codes
from benchmarks.command_line import add_rounds, benchmark_parser, chosen, run_benchmark
from benchmarks.documents import (
    PROJECT,
    write_section,
)
from benchmarks.evaluation_tables import (
    COUNTING,
    COUNTING_TWO_THREADS,
    OURS,
    OURS_TWO_THREADS,
    WITHOUT_COMPILER,
    evaluation_tables,
)
from benchmarks.measuring import (
    CHAIN_CYCLES,
    Method,
    calls_lasting,
    describe_machine,
    describe_versions,
    interleaved,
    require_packages,
    run_clock_chain,
    use_one_thread,
)
from benchmarks.rivals import RIVALS, Rival, count_without_compiler
from deephash_pipeline.progress import track
from deephash_pipeline.retrieval import (
    average_precision,
    average_precision_bounds,
    count_distances,
    distinct_codes,
)

SECTION = "evaluation"
DISTRIBUTIONS = (
    "numpy",
    "numba",
    "torch",
    "scikit-learn",
    "torchmetrics",
    "pytorch-metric-learning",
    "faiss-cpu",
)
CLOCK = "clock"
# A measurement of our own methods lasts about so long, though one call may take milliseconds.
SECONDS_OF_A_MEASUREMENT = 0.3


@dataclass(frozen=True)
class Settings:
    """What is measured.

    Attributes:
        code_lengths: bits per code.
        kinds: pairs of what codes they are and the number of classes.
        queries: queries of a cell.
        items: database items of a cell.
        rival_queries: queries that rivals get; their time is scaled to all queries.
        rounds: measurements of every method; the median counts.
    """

    code_lengths: tuple[int, ...] = (12, 24, 48, 64)
    kinds: tuple[tuple[str, int], ...] = tuple(product((RANDOM, TRAINED), (10, 397)))
    queries: int = 10_000
    items: int = 50_000
    rival_queries: int = 40
    rounds: int = 5


QUICK = Settings(code_lengths=(12, 48), kinds=((RANDOM, 10), (TRAINED, 397)), rival_queries=10, rounds=3)


def measure_cell(
    benchmark: CodeBenchmark, rival_queries: int, rounds: int, rivals: Sequence[Rival] = RIVALS
) -> dict[str, Any]:
    """Time all methods on one set of codes, and compare their figures.

    Args:
        benchmark: queries and database.
        rival_queries: how many of the queries rivals get.
        rounds: measurements of every method.
        rivals: those to time.

    Returns:
        Median seconds of every method with the number of queries they are for, the clock, and mean average precisions
        of the rivals' queries; all of it fit for JSON.

    Raises:
        RuntimeError: if the histograms of the two exact ways differ.
    """
    subset = benchmark.first_queries(rival_queries)

    def count(threads: int) -> Callable[[], Any]:
        def run() -> Any:
            numba.set_num_threads(threads)
            return count_distances(**benchmark.arguments())

        return run

    def evaluate(count: Callable[[], Any]) -> Callable[[], NDArray[np.float64]]:
        return lambda: average_precision(count())

    own = {COUNTING: count(1), OURS: evaluate(count(1))}
    if numba.config.NUMBA_NUM_THREADS > 1:
        own |= {COUNTING_TWO_THREADS: count(2), OURS_TWO_THREADS: evaluate(count(2))}
    full = [Method(name, run, calls_lasting(run, SECONDS_OF_A_MEASUREMENT)) for name, run in own.items()]
    full.append(Method(WITHOUT_COMPILER, evaluate(lambda: count_without_compiler(benchmark))))
    partial = [Method(rival.name, rival.prepare(subset)) for rival in rivals]
    timings = interleaved([Method(CLOCK, run_clock_chain), *full, *partial], rounds)
    numba.set_num_threads(1)

    if not np.array_equal(timings[OURS].result, timings[WITHOUT_COMPILER].result, equal_nan=True):
        raise RuntimeError(f"two exact counts differ for {benchmark.codes} codes of {benchmark.code_length} bits")
    optimistic, pessimistic = average_precision_bounds(count_distances(**subset.arguments()))
    queries_of = {method.name: len(benchmark.query_codes) for method in full}
    queries_of |= {method.name: len(subset.query_codes) for method in partial}
    return {
        "codes": benchmark.codes,
        "classes": benchmark.classes,
        "code_length": benchmark.code_length,
        "queries": len(benchmark.query_codes),
        "items": len(benchmark.database_codes),
        "distinct_codes": distinct_codes(benchmark.database_codes),
        "clock_hertz": CHAIN_CYCLES / timings[CLOCK].cpu_seconds,
        "seconds": {
            name: {"cpu": timings[name].cpu_seconds, "wall": timings[name].wall_seconds, "queries": queries}
            for name, queries in queries_of.items()
        },
        "mean_average_precision": {
            "queries": len(subset.query_codes),
            "expectation": float(np.nanmean(timings[OURS].result[: len(subset.query_codes)])),
            "optimistic": float(np.nanmean(optimistic)),
            "pessimistic": float(np.nanmean(pessimistic)),
            "rivals": {rival.name: timings[rival.name].result for rival in rivals},
        },
    }


def measure_first_calls(code_lengths: Sequence[int]) -> list[dict[str, float]]:
    """Seconds of the first calls in a process with an empty cache of compiled code, and in the next process."""
    with tempfile.TemporaryDirectory() as cache:
        return [_first_calls(code_lengths, cache) for _ in range(2)]


def _first_calls(code_lengths: Sequence[int], cache: str) -> dict[str, float]:
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.first_call", *map(str, code_lengths)],
        cwd=PROJECT,
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds: dict[str, float] = json.loads(finished.stdout)
    return seconds


def measure(settings: Settings, saved: Sequence[str] = ()) -> dict[str, Any]:
    """Measure all cells, those of `settings` and then those of saved codes.

    Args:
        settings: what to measure.
        saved: finished runs whose codes to add, as `saved_codes` names them.

    Raises:
        InputError: if there are no codes of a run.
    """
    of_runs = [benchmark for name in saved for benchmark in saved_codes(name)]
    machine = describe_machine()
    first_calls = measure_first_calls(settings.code_lengths)
    _warm_up()
    use_one_thread()

    def benchmarks() -> Iterator[CodeBenchmark]:
        for (codes, classes), length in product(settings.kinds, settings.code_lengths):
            yield synthetic_codes(codes, classes, length, settings.queries, settings.items)
        yield from of_runs

    total = len(settings.kinds) * len(settings.code_lengths) + len(of_runs)
    cells = [
        measure_cell(benchmark, settings.rival_queries, settings.rounds)
        for benchmark in track(benchmarks(), "evaluation", total)
    ]
    return {
        "machine": machine,
        "versions": describe_versions(DISTRIBUTIONS),
        "settings": asdict(settings),
        "first_calls": first_calls,
        "cells": cells,
    }


def _warm_up() -> None:
    """Run every method once on little, so that no import and no compilation is timed with the first cell."""
    run_clock_chain()
    measure_cell(synthetic_codes(RANDOM, 2, 16, queries=2, items=100), rival_queries=2, rounds=1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit code."""
    parser = benchmark_parser(SECTION, __doc__)
    add_rounds(parser)
    parser.add_argument(
        "--saved", action="append", default=[], metavar="BENCHMARK/METHOD", help="add the codes of a finished run"
    )
    options = parser.parse_args(arguments)

    def measure_all() -> dict[str, Any]:
        require_packages(rival.package for rival in RIVALS if rival.package)
        return measure(chosen(options, Settings(), QUICK), options.saved)

    return run_benchmark(
        SECTION,
        options,
        measure_all,
        evaluation_tables,
        lambda results: write_section(SECTION, evaluation_tables(results)),
    )


if __name__ == "__main__":
    sys.exit(main())
