"""Where blocks are encoded: in processes of this machine, or as tasks of Ray; what is lost begins anew."""

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
from deephash_pipeline.common.ray_cluster import connected
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


"""Blocks for each core of the cluster that are under way or wait."""
RETRIES = 20
"""How often a block is begun anew whose worker or node was lost. Errors of the block itself are no such loss."""
GPU_SHARE = 0.25
"""Of a device for each worker: one decodes while another's images are on it."""


def encode_on_ray(
    blocks: Iterator[Block], work: Work, workers: int | None, address: str | None
) -> Iterator[EncodedBlock]:
    """Encode blocks on a Ray cluster; yield them as they end.

    Nodes may come and go: a block is a task of one core, begun anew where its node is lost.

    Args:
        blocks: taken as the cluster has room for them.
        work: what is the same for all; its source and folder of codes must be seen from all nodes.
        workers: tasks at a time; None for as many as the cluster has cores.
        address: see `deephash_pipeline.common.ray_cluster.connected`.

    Raises:
        InputError: there is no Ray or no cluster, the worker of one block dies again and again, or see
            `deephash_pipeline.search.encoding.blocks.encode_block`.
    """
    with connected(address, workers) as ray:
        shared = ray.put(work)
        options: dict[str, Any] = {"num_cpus": 1, "max_retries": RETRIES, "retry_exceptions": False}
        if work.device.startswith("cuda") or (work.device == "auto" and ray.cluster_resources().get("GPU")):
            options["num_gpus"] = GPU_SHARE
        task = ray.remote(**options)(encode_block)
        under_way: dict[Any, int] = {}
        try:
            while True:
                room = workers or AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
                while len(under_way) < room and (block := next(blocks, None)) is not None:
                    under_way[task.remote(block, shared)] = block.number
                if not under_way:
                    return
                ended, _ = ray.wait(list(under_way), num_returns=1)
                for reference in ended:
                    yield _result(ray, reference, under_way.pop(reference))
        finally:
            for reference in under_way:
                ray.cancel(reference, force=True)


def _result(ray: Any, reference: Any, number: int) -> EncodedBlock:
    try:
        encoded: EncodedBlock = ray.get(reference)
        return encoded
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"block {number} cannot be encoded, its worker was lost {RETRIES} times ({reason})") from error
