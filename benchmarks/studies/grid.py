"""Do workers pay? A grid of short trainings, side by side and one after the other: `python -m benchmarks.studies.grid`.

Wall times on a machine that does nothing else: one process of one thread; one process of two; the runner of the
project; two processes of one thread without any runner, which is what the machine can give; and the runner once more
beside a process that multiplies matrices all the time on one thread. Weights of all that compute on one thread are
compared bit for bit.
"""

import logging
import multiprocessing
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import click
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.documents import markdown_table, rows_by
from benchmarks.studies.short_trainings import as_pipeline, one_after_the_other
from deephash_pipeline.project.runners import ParallelRunner

STEPS = {"lenet": 384, "cifar10_full": 128}
"""Of 128 images: five to ten seconds on one thread."""
COLUMNS = (
    "network: {network} | one thread, s: {one_thread:.1f} | two threads: {two_threads:.2f} | workers: {workers:.2f} | "
    "two processes without a runner: {bare:.2f} | workers / two threads: {gain:.2f} | "
    "beside a neighbour / quiet: {neighbour:.2f}"
)


def by_workers(trainings: list[dict[str, Any]], workers: int) -> tuple[float, list[dict[str, str]]]:
    """Train by the runner; seconds have the start of its processes in them, but not what their server imports."""
    with tempfile.TemporaryDirectory() as folder:
        pipeline, catalog = as_pipeline(trainings, folder)
        began = perf_counter()
        ParallelRunner(workers=workers).run(pipeline, catalog)
        seconds = perf_counter() - began
        return seconds, [catalog.load(f"t{number}.weights") for number in range(len(trainings))]


@contextmanager
def busy_neighbour() -> Iterator[None]:
    """Have another process compute on one thread all the time."""
    neighbour = multiprocessing.get_context("spawn").Process(target=_multiply, daemon=True)
    neighbour.start()
    try:
        yield
    finally:
        neighbour.kill()
        neighbour.join()


def _multiply() -> None:
    threadpool_limits(1)
    matrix = np.random.default_rng(0).normal(size=(512, 512))
    while True:
        matrix = matrix @ matrix
        matrix /= np.abs(matrix).max()


def measure(network: str, steps: int, count: int, workers: int) -> dict[str, Any]:
    """Measure one network; ratios are to the seconds of one thread, more is faster."""
    trainings = [{"network": network, "seed": seed, "steps": steps} for seed in range(count)]

    def done(what: str, measured: tuple[float, list[dict[str, str]]]) -> tuple[float, list[dict[str, str]]]:
        print(f"{network}, {what}: {measured[0]:.1f} s", flush=True)
        return measured

    one_thread, expected = done("one thread", one_after_the_other(trainings, processes=1, thread_count=1))
    two_threads, _ = done("two threads", one_after_the_other(trainings, processes=1, thread_count=2))
    bare, of_bare = done("processes alone", one_after_the_other(trainings, processes=workers, thread_count=1))
    # A run starts the server of its workers while it reads the configuration.
    by_workers([{**training, "steps": 1} for training in trainings[:workers]], workers)
    quiet, of_workers = done("workers", by_workers(trainings, workers))
    with busy_neighbour():
        disturbed, of_disturbed = done("workers beside a neighbour", by_workers(trainings, workers))
    if not expected == of_bare == of_workers == of_disturbed:
        raise AssertionError(f"{network}: weights differ")
    return {
        "network": network,
        "one_thread": one_thread,
        "two_threads": one_thread / two_threads,
        "workers": one_thread / quiet,
        "bare": one_thread / bare,
        "gain": two_threads / quiet,
        "neighbour": disturbed / quiet,
    }


@click.command()
@click.option("--count", default=20, help="trainings of each network")
@click.option("--workers", default=2)
@click.option("--effort", default=1.0, help="share of the steps of each training")
def main(count: int, workers: int, effort: float) -> None:
    """Print the table."""
    logging.getLogger("deephash_pipeline").setLevel(logging.WARNING)
    print(f"load {os.getloadavg()[0]:.1f}; {count} trainings, {workers} workers")
    rows = [measure(name, round(effort * steps), count, workers) for name, steps in STEPS.items()]
    print(markdown_table(rows_by(COLUMNS, rows)))


if __name__ == "__main__":
    main()
