"""Forked processes: how objects behave there that the parent has made, as under gunicorn or `multiprocessing`."""

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """An object that may not be used on as it is by two processes."""

    def after_fork(self) -> None:
        """Give up, in the new process, what belongs to the old one."""


_told: WeakSet[Forkable] = WeakSet()


def tell_after_fork(item: Forkable) -> None:
    """Have an object told in every process that is forked while it lives."""
    _told.add(item)


def _tell() -> None:
    for item in list(_told):
        item.after_fork()


os.register_at_fork(after_in_child=_tell)
