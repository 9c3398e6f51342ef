"""Fair timing on a shared machine: methods take turns, and CPU time, which neighbours hardly change, is what counts."""

import os
import platform
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from deephash_pipeline.common.errors import InputError

CHAIN_STEPS = 10_000_000
CHAIN_CYCLES = 6 * CHAIN_STEPS


class Method(NamedTuple):
    """Something to be timed: what results call it, the work, and how often it is called for one measurement."""

    name: str
    run: Callable[[], Any]
    calls: int = 1


class Timing(NamedTuple):
    """Median seconds of one call, and what the last call returned."""

    cpu_seconds: float
    wall_seconds: float
    result: Any

    def seconds(self) -> dict[str, float]:
        """The seconds as results store them."""
        return {"cpu": self.cpu_seconds, "wall": self.wall_seconds}


def interleaved(methods: Sequence[Method], rounds: int) -> dict[str, Timing]:
    """Time methods in turn, A B C A B C, and return the medians over rounds by name.

    >>> timings = interleaved([Method("sum", lambda: sum(range(9))), Method("nothing", int)], rounds=3)
    >>> timings["sum"].result
    36
    """
    if rounds < 1:
        raise InputError(f"rounds is {rounds}; time every method at least once.")
    if len({method.name for method in methods}) < len(methods):
        raise InputError(f"methods have one name twice: {', '.join(method.name for method in methods)}.")
    seconds: dict[str, list[tuple[float, float]]] = {method.name: [] for method in methods}
    results: dict[str, Any] = {}
    for _ in range(rounds):
        for method in methods:
            cpu, wall = time.process_time(), time.perf_counter()
            for _ in range(method.calls):
                results[method.name] = method.run()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            seconds[method.name].append((cpu / method.calls, wall / method.calls))
    medians = {name: map(median, zip(*measured, strict=True)) for name, measured in seconds.items()}
    return {name: Timing(*cpu_and_wall, results[name]) for name, cpu_and_wall in medians.items()}


def calls_lasting(run: Callable[[], Any], seconds: float) -> int:
    """How many calls of `run` take about `seconds`, at least one; two calls to find out warm up caches."""
    run()
    start = time.perf_counter()
    run()
    return max(1, round(seconds / (time.perf_counter() - start)))


def use_one_thread() -> None:
    """Limit the thread pools of all libraries that are imported by now to one thread."""
    threadpool_limits(1)
    torch.set_num_threads(1)
    numba.set_num_threads(1)


def versions_of(distributions: Iterable[str]) -> list[str]:
    """Name packages with their versions; InputError, in one line that names the remedy, unless all are installed."""
    found, missing = [], []
    for name in distributions:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        raise InputError(f"not installed: {', '.join(missing)}; `make .venv/bench` installs what the benchmarks need.")
    return found


def run_clock_chain() -> None:
    """Do `CHAIN_CYCLES` cycles of work: timed among the methods, it gives the clock they ran at, not the nominal one.

    Each instruction of the chain, a shift or an exclusive or, waits one cycle for the one before.
    """
    _chain(CHAIN_STEPS)


@numba.njit
def _chain(steps: int) -> np.uint64:
    state = np.uint64(88172645463325252)
    for _ in range(steps):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
    return state


def describe_run(distributions: Iterable[str]) -> str:
    """What a reader needs to judge a timing: processor, cores, memory, system, present load, and versions.

    Raises:
        InputError: one of the `distributions` is not installed.
    """
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = [f"python {platform.python_version()}", *versions_of(distributions)]
    return (
        f"{_processor()}, {os.cpu_count()} cores, {gibibytes:.1f} GiB, {platform.system()} {platform.machine()}; load "
        f"{os.getloadavg()[0]:.2f} at the start. {', '.join(versions)}."
    )


def describe_cells(cells: Collection[Mapping[str, Any]]) -> str:
    """The clock in all cells, and how busy their methods kept the machine."""
    clocks = [cell["clock_hertz"] / 1e9 for cell in cells]
    taken = [taken for cell in cells for name, taken in cell["seconds"].items() if "two threads" not in name]
    busy = [seconds["cpu"] / seconds["wall"] for seconds in taken]
    return (
        f"Clock {min(clocks):.2f} to {max(clocks):.2f} GHz in the cells. Methods on one thread kept {min(busy):.2f} to "
        f"{max(busy):.2f} cores busy (CPU by wall time)."
    )


def _processor() -> str:
    if not (information := Path("/proc/cpuinfo")).is_file():
        return platform.processor() or platform.machine()
    entries = (line.partition(":") for line in information.read_text().partition("\n\n")[0].splitlines())
    entry = {name.strip(): value.strip() for name, _, value in entries}
    named = ", ".join(f"{part.removeprefix('cpu ')} {entry[part]}" for part in ("cpu family", "model") if part in entry)
    name = entry.get("model name", platform.machine())
    return f"{name} ({named})" if named else name
