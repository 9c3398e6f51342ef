"""Several processes that train one network, each on its part of every batch, through `torch.distributed`.

One process is the case of one rank: nothing here does anything then.
"""

import atexit
import os
from collections.abc import Iterable

import torch
import torch.distributed
from torch import Tensor, nn

from deephash_pipeline.devices import require_no_index
from deephash_pipeline.errors import InputError


def backend(device: torch.device) -> str:
    """Name what carries messages: votes among the CPUs need not wait for what the devices are busy with."""
    return "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"


def join_ranks(device: torch.device) -> None:
    """Join the other processes if ``torchrun`` has started this one (the variable RANK is set).

    Raises:
        InputError: a device with an index, which all processes of a machine would share.
    """
    if "RANK" not in os.environ or torch.distributed.is_initialized():
        return
    require_no_index(device)
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group(backend(device))
    atexit.register(torch.distributed.destroy_process_group)


def world_size() -> int:
    """Number of processes that train together."""
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


def rank() -> int:
    """Number of this process among them; only rank 0 writes files and shows progress."""
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def share_of(batch_size: int, ranks: int) -> int:
    """Divide a batch among ranks.

    Raises:
        InputError: it cannot be divided equally.

    Example:
        >>> share_of(128, ranks=2)
        64
    """
    if batch_size % ranks:
        raise InputError(
            f"`batch_size` {batch_size} cannot be divided among {ranks} devices: use a multiple of {ranks}"
        )
    return batch_size // ranks


def own_part(batch_size: int) -> slice:
    """Return which samples of a batch this process takes through the trunk.

    Raises:
        InputError: the batch cannot be divided equally.

    Example:
        >>> own_part(128)
        slice(0, 128, None)
    """
    share = share_of(batch_size, world_size())
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
    gradients = [parameter.grad for parameter in module.parameters() if parameter.grad is not None]
    if not gradients:
        return
    # One message instead of many; and the layers' memory layouts differ, which messages do not know of.
    joined = torch.cat([gradient.flatten() for gradient in gradients])
    torch.distributed.all_reduce(joined)
    totals = torch.split(joined, [gradient.numel() for gradient in gradients])
    for gradient, total in zip(gradients, totals, strict=True):
        gradient.copy_(total.view_as(gradient))


def take_from_first_rank(tensors: Iterable[Tensor]) -> None:
    """Overwrite tensors by those of rank 0.

    What every rank computes for itself is the same but for the last bits, where a device adds up in no fixed order.
    """
    if world_size() == 1:
        return
    for tensor in tensors:
        message = tensor.contiguous()
        torch.distributed.broadcast(message, src=0)
        tensor.copy_(message)


def share_state(module: nn.Module) -> None:
    """Give every rank the parameters and buffers of rank 0."""
    take_from_first_rank(module.state_dict().values())


def any_rank(flag: bool) -> bool:
    """Whether the flag is set on any rank, so that all ranks act on it at the same step."""
    if world_size() == 1:
        return flag
    votes = torch.tensor(int(flag))
    torch.distributed.all_reduce(votes)
    return bool(votes.item())
