"""What compiled kernels share: a processor instruction, and the threads they run on."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic

TASKS_PER_THREAD = 4


def in_threads(work: Callable[[int, int], None], items: int) -> None:
    """Call work(start, stop) for ranges that together make 0..items, on as many threads as numba is set to use.

    Kernels that release Python's lock need no more than Python's own threads. Those of numba would take it several
    times as long to compile the kernel, and in their OpenMP kind set PyTorch's number of threads along with their own.

    Args:
        work: a compiled function; what it does to one range may not depend on another.
        items: how many there are.
    """
    threads = numba.get_num_threads()
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
