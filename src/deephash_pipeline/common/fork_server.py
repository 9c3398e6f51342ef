"""The fork server: a process that has imported what workers need, and has no threads; and the workers that it starts.

It imports for several seconds, while the run that wants it looks at what is up to date.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import forkserver, resource_tracker

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
"""Variables that libraries take their number of threads from when they are imported."""
# So that no library starts threads when it is imported, which a fork would not copy; nor numba later, for whose threads
# a worker that is killed would leave a semaphore behind.
ONE_THREAD_EACH = dict.fromkeys(THREAD_VARIABLES, "1")


def start(preloaded: str) -> None:
    """Start the fork server, unless it runs.

    Args:
        preloaded: name of the module that it imports, with all that workers need.
    """
    multiprocessing.set_forkserver_preload([preloaded])
    # Ctrl-C is for the process that was started from the terminal. The tracker goes first, for it sets signals itself.
    resource_tracker.ensure_running()
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with environment():
            forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


@contextmanager
def environment() -> Iterator[None]:
    """Give processes that are started inside the block one thread each."""
    former = {name: os.environ[name] for name in ONE_THREAD_EACH if name in os.environ}
    os.environ.update(ONE_THREAD_EACH)
    try:
        yield
    finally:
        for name in ONE_THREAD_EACH:
            del os.environ[name]
        os.environ.update(former)


def end_with_parent() -> None:
    """End this process, whatever it does, as soon as the one that has started it is gone; without a parent, never.

    The system's own means, a signal at the death of the parent (``prctl(2)``), would not do: PyTorch asks for SIGINT,
    which a process ignores whose parent does, as in the background of a shell; and a fork server stands between a
    worker and the run.

    Example:
        >>> end_with_parent()
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="end with parent", daemon=True).start()
