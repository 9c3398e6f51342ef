"""Several processes that train one network, each on its part of every batch, through `torch.distributed`.

One process is the case of one rank: nothing here does anything then.
"""

import atexit
import os
from collections.abc import Iterable

import torch
import torch.distributed
from torch import Tensor, nn

from deephash_pipeline.common.devices import require_no_index
from deephash_pipeline.common.errors import InputError


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


def part_of(batch_size: int, ranks: int, rank: int) -> slice:
    """Return which samples of a batch a rank takes through the trunk; parts differ by one sample at most.

    Raises:
        InputError: there are fewer samples than ranks.

    Example:
        >>> [part_of(128, ranks=3, rank=rank) for rank in range(3)]
        [slice(0, 42, None), slice(42, 85, None), slice(85, 128, None)]
    """
    if batch_size < ranks:
        raise InputError(
            f"`batch_size` {batch_size} has less than one image for each of {ranks} processes: start fewer"
        )
    return slice(rank * batch_size // ranks, (rank + 1) * batch_size // ranks)


def own_part(batch_size: int) -> slice:
    """Return which samples of a batch this process takes through the trunk.

    Raises:
        InputError: there are fewer samples than ranks.

    Example:
        >>> own_part(128)
        slice(0, 128, None)
    """
    return part_of(batch_size, world_size(), rank())


def gather(part: Tensor, batch_size: int) -> Tensor:
    """Join the parts of all ranks, that of `own_part` each, to the whole batch (batch_size, ...), in order of ranks."""
    ranks = world_size()
    if ranks == 1:
        return part
    # Messages are of one size.
    message = part.new_zeros(-(-batch_size // ranks), *part.shape[1:])
    message[: len(part)] = part
    messages = [torch.empty_like(message) for _ in range(ranks)]
    torch.distributed.all_gather(messages, message)
    parts = (part_of(batch_size, ranks, number) for number in range(ranks))
    return torch.cat([message[: part.stop - part.start] for message, part in zip(messages, parts, strict=True)])


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
