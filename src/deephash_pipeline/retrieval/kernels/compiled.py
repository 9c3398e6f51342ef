"""Shared by compiled kernels: a processor instruction, and the threads that they run on."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic

from deephash_pipeline.common.machine_code import compiled

TASKS_PER_THREAD = 4


def kernel(function: Any) -> Any:
    """Compile what Python calls."""
    return compiled(no_cfunc_wrapper=True)(function)


def inner(function: Any) -> Any:
    """Compile what only kernels call: without entrances that nobody uses, it takes a third of the time."""
    return compiled(no_cfunc_wrapper=True, no_cpython_wrapper=True)(function)


def threads_to_use() -> int:
    """Say on how many threads numba is set to run, without starting them.

    `numba.get_num_threads` starts those of numba's own loops, which are not used here. In their OpenMP kind they set
    PyTorch's number of threads along with their own, and a training after it would round otherwise.
    """
    try:
        numba.threading_layer()  # type: ignore[attr-defined]
    except ValueError:
        return int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    return int(numba.get_num_threads())


def in_threads(work: Callable[[int, int], None], items: int) -> None:
    """Call work(start, stop) for ranges that together make 0..items, on as many threads as numba is set to use.

    Kernels that release Python's lock need no more than Python's own threads. Those of numba would take it several
    times as long to compile the kernel.

    Args:
        work: a compiled function; what it does to one range may not depend on another.
        items: number of items.
    """
    threads = threads_to_use()
    tasks = min(items, threads * TASKS_PER_THREAD)
    borders = [task * items // tasks for task in range(tasks + 1)]
    if threads == 1:
        for start, stop in pairwise(borders):
            work(start, stop)
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(work, start, stop) for start, stop in pairwise(borders)]:
            done.result()


def _popcount_instruction(_typing_context: Any, _word: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: list[Any]) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


# Number of ones in a uint64: numba itself has no function for the processor's instruction.
popcount: Any = intrinsic(_popcount_instruction)
