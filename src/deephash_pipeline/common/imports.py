"""Imports at the beginning of a process."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def imported_for_good() -> Iterator[None]:
    """Import inside the block what stays to the end: the garbage collector looks at none of it, then or later.

    It would a dozen times while the libraries are imported, and again when the process ends: a quarter of the time
    that imports take, and more than a second of the end.

    Example:
        >>> with imported_for_good():
        ...     import json
        >>> gc.isenabled()
        True
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Triton, once it is there, takes what was frozen for leaks when the process ends, and prints a page about them.
        if "triton" not in sys.modules:
            gc.freeze()
        if enabled:
            gc.enable()
