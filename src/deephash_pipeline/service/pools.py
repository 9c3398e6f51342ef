"""Threads for each kind of work, so that no kind keeps another waiting."""

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple

from anyio import CapacityLimiter, to_thread
from fastapi import HTTPException

Arguments = TypeVarTuple("Arguments")
Made = TypeVar("Made")


def refuse_one_more() -> HTTPException:
    """What is answered where there is no place."""
    return HTTPException(429, "too many requests at once; ask again in a second", {"Retry-After": "1"})


class Pool:
    """Threads for one kind of work, and places to wait for them; who finds none is refused.

    Args:
        threads: number of calls at a time.
        waiting: number of calls that wait.
    """

    def __init__(self, threads: int, waiting: int) -> None:
        self.most, self.calls = threads + waiting, 0
        self._limiter = CapacityLimiter(threads)

    async def run(self, function: Callable[[*Arguments], Made], *arguments: *Arguments) -> Made:
        """Call a function in a thread.

        Raises:
            HTTPException: 429, no place is left.
        """
        if self.calls >= self.most:
            raise refuse_one_more()
        self.calls += 1
        try:
            return await to_thread.run_sync(function, *arguments, limiter=self._limiter)
        finally:
            self.calls -= 1
