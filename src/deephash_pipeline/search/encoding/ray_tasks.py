"""Blocks as tasks of Ray, on whatever nodes there are at the time."""

from collections.abc import Iterator
from typing import Any

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.ray_cluster import connected
from deephash_pipeline.search.encoding.blocks import EncodedBlock, Work, encode_block
from deephash_pipeline.search.encoding.listing import Block

AHEAD = 2
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
