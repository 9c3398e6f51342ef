"""Several processes that train one network, each on its part of every batch, through `torch.distributed`.

One process is the case of one rank: nothing here does anything then.
"""

import os

import torch
import torch.distributed
from torch import Tensor, nn

from deephash_pipeline.errors import InputError


def join_ranks(device: torch.device) -> None:
    """Join the other processes if ``torchrun`` has started this one (the variable RANK is set)."""
    if "RANK" in os.environ and not torch.distributed.is_initialized():
        if device.type == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")


def world_size() -> int:
    """Number of processes that train together."""
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


def rank() -> int:
    """Number of this process among them; only rank 0 writes files and shows progress."""
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def own_part(batch_size: int) -> slice:
    """Return which samples of a batch this process takes through the trunk.

    Raises:
        InputError: the batch cannot be divided equally.
    """
    ranks = world_size()
    if batch_size % ranks:
        raise InputError(f"`batch_size` {batch_size} cannot be divided among {ranks} devices: use a multiple of them")
    share = batch_size // ranks
    return slice(rank() * share, (rank() + 1) * share)


def gather(part: Tensor) -> Tensor:
    """Join the parts (share, ...) of all ranks to the whole batch, in order of ranks."""
    if world_size() == 1:
        return part
    parts = [torch.empty_like(part) for _ in range(world_size())]
    torch.distributed.all_gather(parts, part.contiguous())
    return torch.cat(parts)


def sum_gradients(module: nn.Module) -> None:
    """Add up the gradients that the ranks have found, each for its part of the batch."""
    if world_size() == 1:
        return
    for parameter in module.parameters():
        if parameter.grad is not None:
            torch.distributed.all_reduce(parameter.grad)


def share_state(module: nn.Module) -> None:
    """Give every rank the parameters and buffers of rank 0."""
    if world_size() == 1:
        return
    for tensor in module.state_dict().values():
        torch.distributed.broadcast(tensor, src=0)


def any_rank(flag: bool) -> bool:
    """Whether the flag is set on any rank, so that all ranks act on it at the same step."""
    if world_size() == 1:
        return flag
    votes = torch.tensor(int(flag))
    if torch.distributed.get_backend() == "nccl":
        votes = votes.cuda()
    torch.distributed.all_reduce(votes)
    return bool(votes.item())
