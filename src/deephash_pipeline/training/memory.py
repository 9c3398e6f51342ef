"""Freed memory stays with the process while it trains, because the next step asks for the same sizes again."""

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

# Options of mallopt(3). By itself glibc takes each large block from the system and returns it when it is freed, and
# every step pays for fresh, zeroed pages: a tenth to a half of its time.
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4
NEVER, NONE = -1, 0
# What glibc arrives at by itself in a process that uses large blocks.
USUAL = {MMAP_MAX: 65536, MMAP_THRESHOLD: 32 * 2**20, TRIM_THRESHOLD: 64 * 2**20}


class _Keepers:
    """How many blocks are open: the setting is one for the whole process."""

    open = 0


@contextmanager
def freed_memory_is_kept() -> Iterator[None]:
    """Let glibc keep all freed memory inside the block, and give it back behind the outermost one.

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
