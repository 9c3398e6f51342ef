"""What processes have in common that others of this package have started."""

import multiprocessing
import os
import threading


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
