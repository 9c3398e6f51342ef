"""Where to compute, how batches get there, and what becomes of memory that is freed on the way."""

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.errors import InputError

# Options of mallopt(3). By itself glibc takes each large block from the system and returns it when it is freed, and
# every step pays for fresh, zeroed pages: a tenth to a half of its time.
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4
NEVER, NONE = -1, 0
# What glibc arrives at by itself in a process that uses large blocks.
USUAL = {MMAP_MAX: 65536, MMAP_THRESHOLD: 32 * 2**20, TRIM_THRESHOLD: 64 * 2**20}


def resolve_device(device: str) -> torch.device:
    """Turn ``auto`` into the first CUDA device, else the CPU; anything else is taken as PyTorch names it.

    Raises:
        InputError: not a device's name, or a CUDA device that is not there.
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError:
        raise InputError(f"unknown device `{device}`: use auto, cpu, cuda or cuda:N") from None
    if resolved.type == "cuda" and (resolved.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device `{device}` is not there: use auto or cpu")
    return resolved


def to_device(array: NDArray[Any] | Tensor, device: torch.device) -> Tensor:
    """Return an array or a CPU tensor as a tensor on a device; on the CPU it shares its memory.

    A copy from ordinary memory to a CUDA device waits until the device is idle; one from pinned memory takes its turn
    in the device's queue. Not for whole data sets: pinned memory is not given back.
    """
    tensor = array if isinstance(array, Tensor) else torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class _Keepers:
    """How many blocks are open: the setting is one for the whole process."""

    open = 0


@contextmanager
def freed_memory_is_kept() -> Iterator[None]:
    """Let glibc keep all freed memory inside the block, and give it back after the outermost one.

    Where memory is not managed by glibc, nothing happens.
    """
    if platform.libc_ver()[0] != "glibc":
        yield
        return
    library = ctypes.CDLL(None)
    library.mallopt(MMAP_MAX, NONE)
    library.mallopt(TRIM_THRESHOLD, NEVER)
    _Keepers.open += 1
    try:
        yield
    finally:
        _Keepers.open -= 1
        if not _Keepers.open:
            for option, value in USUAL.items():
                library.mallopt(option, value)
            library.malloc_trim(0)
