"""Blocks on the cores of this machine: processes of one thread each, and new ones for those that die."""

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from deephash_pipeline.common.child_process import end_with_parent
from deephash_pipeline.common.devices import cuda_devices
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.search.encoding.blocks import EncodedBlock, Work, encode_block
from deephash_pipeline.search.encoding.listing import Block

AHEAD = 2
"""Blocks for each worker that are under way or wait beside it."""
DEATHS_IN_A_ROW = 5


def encode_locally(blocks: Iterator[Block], work: Work, workers: int) -> Iterator[EncodedBlock]:
    """Encode blocks, each in one of some processes; yield them as they end.

    A worker that dies takes the others with it, and all begin anew with what was not done: a block that is not whole
    was not written. Several CUDA devices are shared out among the workers.

    Args:
        blocks: taken as workers ask for them.
        work: what is the same for all.
        workers: processes.

    Raises:
        InputError: workers die without a block done between, or see `encode_block`.
    """
    # Its server has imported what workers need, so a new worker takes no time.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    waiting: deque[Block] = deque()
    deaths = 0
    devices = cuda_devices() if work.device in ("auto", "cuda") else ()
    while True:
        under_way: dict[Future[EncodedBlock], Block] = {}
        prepared_with = (context.Value("i", 0), devices, dict(os.environ))
        pool = ProcessPoolExecutor(workers, context, _prepare, prepared_with)
        try:
            while True:
                while len(under_way) < AHEAD * workers:
                    if not waiting and (following := next(blocks, None)) is not None:
                        waiting.append(following)
                    if not waiting:
                        break
                    future = pool.submit(encode_block, waiting[0], work)
                    under_way[future] = waiting.popleft()
                if not under_way:
                    return
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    encoded = future.result()
                    del under_way[future]
                    deaths = 0
                    yield encoded
        except BrokenProcessPool:
            deaths += 1
            waiting.extendleft(reversed(under_way.values()))
            if deaths == DEATHS_IN_A_ROW:
                names = ", ".join(str(block.number) for block in under_way.values())
                raise InputError(
                    f"workers were killed {deaths} times in a row, without one of the blocks {names} done: give them "
                    "more memory, or take fewer by --workers"
                ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def _prepare(workers: Any, devices: tuple[str, ...], environment: dict[str, str]) -> None:
    """Make a process a worker: one device, no traceback at Ctrl-C, and no longer a life than the command's."""
    # The server that it comes from may have been started with other credentials of a store.
    os.environ.update(environment)
    if devices:
        with workers.get_lock():
            os.environ["CUDA_VISIBLE_DEVICES"] = devices[workers.value % len(devices)]
            workers.value += 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
