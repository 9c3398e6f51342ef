"""Where to compute, how batches get there, and what becomes of memory that is freed on the way."""

import ctypes
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.fork_server import THREAD_VARIABLES

# Options of mallopt(3). By itself glibc takes each large block from the system and returns it when it is freed, and
# every step pays for fresh, zeroed pages: a tenth to a half of its time.
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4
NEVER, NO_BLOCKS = -1, 0
# What glibc arrives at by itself in a process that uses large blocks.
USUAL_ALLOCATION = {MMAP_MAX: 65536, MMAP_THRESHOLD: 32 * 2**20, TRIM_THRESHOLD: 64 * 2**20}


def resolve_device(device: str) -> torch.device:
    """Turn ``auto`` into the first CUDA device, else the CPU; anything else is taken as PyTorch names it.

    Raises:
        InputError: not a device's name, or a CUDA device that is not there.

    Example:
        >>> resolve_device("cpu")
        device(type='cpu')
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError:
        raise InputError(f"unknown device `{device}`: use auto, cpu, cuda or cuda:N") from None
    if resolved.type not in ("cpu", "cuda"):
        raise InputError(f"device `{device}` is not supported: use auto, cpu, cuda or cuda:N")
    if resolved.type == "cuda" and (resolved.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device `{device}` is not there: use auto or cpu")
    return resolved


def resolve_precision(precision: str, device: torch.device) -> str:
    """Turn ``auto`` into ``bfloat16`` where a device multiplies that by itself, else into ``float32``.

    CUDA devices do so from compute capability 8.0 on, x86 processors with AMX or AVX-512 for bfloat16. Where PyTorch
    does not say what a processor can do, it is ``float32``; so it is on Arm, where nothing was measured.

    Example:
        >>> resolve_precision("float32", torch.device("cpu"))
        'float32'
    """
    if precision != "auto":
        return precision
    if device.type == "cuda":
        with torch.cuda.device(device):
            multiplies = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        capabilities: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
        multiplies = any(capabilities.get(name, False) for name in ("amx_bf16", "avx512_bf16"))
    return "bfloat16" if multiplies else "float32"


def require_no_index(device: torch.device) -> None:
    """Raise InputError if one device is named where each process takes its own."""
    if device.index is not None:
        raise InputError(f"device `{device}` is one, and several processes each take their own: use {device.type}")


def to_device(array: NDArray[Any] | Tensor, device: torch.device) -> Tensor:
    """Return an array or a CPU tensor as a tensor on a device; on the CPU it shares its memory.

    A copy from ordinary memory to a CUDA device waits until the device is idle; one from pinned memory takes its turn
    in the device's queue. Not for whole data sets: pinned memory is not given back.

    Example:
        >>> to_device(np.arange(3), torch.device("cpu"))
        tensor([0, 1, 2])
    """
    tensor = array if isinstance(array, Tensor) else torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


class _Keepers:
    """How many blocks are open: the setting is one for the whole process."""

    open = 0


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Have PyTorch, NumPy, SciPy, scikit-learn and numba compute on so many threads inside the block.

    Sums are cut by the number of threads, so results are equal bit for bit only where that is equal. Environment
    variables cannot see to it: numba's OpenMP threads, once started, set PyTorch's number.

    Args:
        number: number of threads; numba has no more than there are cores.

    Example:
        >>> with threads(1):
        ...     torch.get_num_threads()
        1
    """
    if number == torch.get_num_threads() and all(os.environ.get(name) == str(number) for name in THREAD_VARIABLES):
        # So it is in workers, and to look through all libraries takes longer than many a node.
        yield
        return
    import numba  # noqa: PLC0415 - takes longer than most commands that never compute
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    former = torch.get_num_threads()
    with ExitStack() as stack:
        # Only where it changes something, for numba starts its threads then.
        if number < numba.config.NUMBA_NUM_THREADS:  # type: ignore[attr-defined]
            stack.callback(numba.set_num_threads, numba.get_num_threads())
            numba.set_num_threads(number)
        stack.enter_context(threadpool_limits(number))
        # Last, for both of the others may set it; and set back last.
        torch.set_num_threads(number)
        yield
    torch.set_num_threads(former)


@contextmanager
def freed_memory_is_kept() -> Iterator[None]:
    """Let glibc keep all freed memory inside the block, and give it back after the outermost one.

    Where memory is not managed by glibc, nothing happens.

    Example:
        >>> with freed_memory_is_kept():
        ...     total = sum(float(torch.ones(1000).sum()) for _ in range(3))
    """
    if platform.libc_ver()[0] != "glibc":
        yield
        return
    library = ctypes.CDLL(None)
    library.mallopt(MMAP_MAX, NO_BLOCKS)
    library.mallopt(TRIM_THRESHOLD, NEVER)
    _Keepers.open += 1
    try:
        yield
    finally:
        _Keepers.open -= 1
        if not _Keepers.open:
            for option, value in USUAL_ALLOCATION.items():
                library.mallopt(option, value)
            library.malloc_trim(0)
