"""Where blocks are encoded: in processes of this machine, or as tasks of Ray."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, TypeAlias

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.fork_server import end_with_parent
from deephash_pipeline.common.ray_cluster import connected
from deephash_pipeline.search.encoding.blocks import Work, encode_block
from deephash_pipeline.search.encoding.code_folder import Broken
from deephash_pipeline.search.encoding.listing import Block

Encoded: TypeAlias = tuple[int, list[Broken]]
"""How many images of a block are encoded, and which are not."""
AHEAD = 2
"""Blocks for each worker that are under way or wait beside it."""
RETRIES = 20
"""How often Ray begins a block anew whose worker or node was lost. Errors of the block itself are no such loss."""
GPU_SHARE = 0.25
"""Of a device for each task of Ray: one decodes while another's images are on it."""


def encode_locally(blocks: Iterator[Block], work: Work, workers: int) -> Iterator[Encoded]:
    """Encode blocks, each in one of some processes; yield them as they end.

    Several CUDA devices are shared out among the workers.

    Args:
        blocks: blocks that are taken as workers ask for them.
        work: facts that are the same for all.
        workers: processes.

    Raises:
        InputError: a worker was killed, or see `encode_block`.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    pool = ProcessPoolExecutor(workers, context, _prepare, (dict(os.environ),))
    try:
        yield from _as_they_end(blocks, lambda block: pool.submit(encode_block, block, work), lambda: AHEAD * workers)
    except BrokenProcessPool:
        raise InputError(
            "a worker was killed, as where memory is short: the same command goes on; give it more memory, or fewer "
            "--workers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def encode_on_ray(blocks: Iterator[Block], work: Work, workers: int | None, address: str | None) -> Iterator[Encoded]:
    """Encode blocks on a Ray cluster; yield them as they end.

    Nodes may come and go: a block is a task of one core, begun anew where its node is lost.

    Args:
        blocks: blocks that are taken as the cluster has room for them.
        work: facts that are the same for all; its source and folder of codes must be seen from all nodes.
        workers: tasks at a time; None for as many as the cluster has cores.
        address: address of the cluster, see `deephash_pipeline.common.ray_cluster.connected`.

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
        under_way = set()

        def submitted(block: Block) -> Future[Encoded]:
            reference = task.remote(block, shared)
            under_way.add(reference)
            future: Future[Encoded] = reference.future()
            future.add_done_callback(lambda _: under_way.discard(reference))
            return future

        def room() -> int:
            return workers or AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))

        try:
            yield from _as_they_end(blocks, submitted, room)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            reason = " ".join(str(error).split())[:300]
            raise InputError(f"a block cannot be encoded, its worker was lost {RETRIES} times ({reason})") from error
        finally:
            for reference in list(under_way):
                ray.cancel(reference, force=True)


def _as_they_end(
    blocks: Iterator[Block], submit: Callable[[Block], Future[Encoded]], room: Callable[[], int]
) -> Iterator[Encoded]:
    """Submit as many blocks as there is room for; yield what becomes of them."""
    under_way: set[Future[Encoded]] = set()
    while True:
        under_way |= set(map(submit, islice(blocks, max(0, room() - len(under_way)))))
        if not under_way:
            return
        ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
        for future in ended:
            yield future.result()


def _prepare(environment: dict[str, str]) -> None:
    """Make a process a worker: no traceback at Ctrl-C, and no longer a life than the command's."""
    # The server that it comes from may have been started with other credentials of a store.
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
