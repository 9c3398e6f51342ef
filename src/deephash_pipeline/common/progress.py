"""Progress of long computations: a bar on a terminal, a line now and then in a log; both say how much time is left."""

import logging
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

logger = logging.getLogger(__name__)

SECONDS_TO_FIRST_LINE = 2.0
SECONDS_BETWEEN_LINES = 30.0
SECONDS_BETWEEN_FRAMES = 0.1

SPEED_ESTIMATE_PERIOD = 3600.0
"""Seconds over which a bar averages its speed. By rich's default, 30, no time is left where a step takes longer."""

CountedItem = TypeVar("CountedItem")
_listener: ContextVar[Callable[[str, str], None] | None] = ContextVar("listener", default=None)


def track(
    items: Iterable[CountedItem], description: str, total: int, console: Console | None = None
) -> Iterator[CountedItem]:
    """Yield `items` while showing how many of `total` are done.

    Args:
        items: items to iterate over.
        description: text that one sees, such as ``"gist"``.
        total: number of items expected.
        console: console to draw on; standard error by default.

    Example:
        >>> list(track("abc", "letters", total=3))
        ['a', 'b', 'c']
    """
    with count_steps(description, total, where=f"0 of {total}", console=console) as advance:
        for done, item in enumerate(items, start=1):
            yield item
            advance(f"{done} of {total}")


@contextmanager
def count_steps(
    description: str, total: int, done: int = 0, where: str = "", console: Console | None = None
) -> Iterator[Callable[[str], None]]:
    """Show how far a computation of `total` steps has come, and how long the rest will take at its present speed.

    Args:
        description: text that one sees, such as ``"deephash.b48"``.
        total: number of steps, including those of an earlier run.
        done: steps that an earlier run has made; they do not count towards the speed.
        where: text to show before the first step, such as ``"epoch 14 of 20"``.
        console: console to draw on; standard error by default.

    Yields:
        A function to call after each step with what is to be shown from then on.

    Example:
        >>> with count_steps("deephash.b48", total=2, where="epoch 1 of 1") as advance:
        ...     for step in range(2):
        ...         advance("epoch 1 of 1")
    """
    console = console or Console(stderr=True)
    listener = _listener.get()

    def told(advance: Callable[[str], None]) -> Callable[[str], None]:
        def both(where: str) -> None:
            advance(where)
            listener(description, where)  # type: ignore[misc]

        return both if listener else advance

    # Workers, which are other processes, share the terminal of the run; their lines are logged where it was started.
    if console.is_terminal and multiprocessing.parent_process() is None:
        with _bar(description, total, done, where, console) as advance:
            yield told(advance)
    else:
        with _lines(description, total, done, where, console) as advance:
            yield told(advance)


@contextmanager
def hearing(listener: Callable[[str, str], None]) -> Iterator[None]:
    """Have a function told the steps of what is computed in the block, as a page wants them.

    Args:
        listener: function that is given the description and where it is, after each step.

    Example:
        >>> with hearing(lambda *step: print(*step)):
        ...     letters = list(track("ab", "letters", total=2))
        letters 1 of 2
        letters 2 of 2
    """
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


@contextmanager
def _bar(description: str, total: int, done: int, where: str, console: Console) -> Iterator[Callable[[str], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[where]}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, speed_estimate_period=SPEED_ESTIMATE_PERIOD) as bar:
        task = bar.add_task(description, total=total, completed=done, where=where)
        shown = time.monotonic()

        def advance(where: str) -> None:
            nonlocal done, shown
            done += 1
            # A frame for every one of a million short steps would slow them down.
            if done == total or time.monotonic() - shown >= SECONDS_BETWEEN_FRAMES:
                shown = time.monotonic()
                bar.update(task, completed=done, where=where)

        yield advance


@contextmanager
def _lines(description: str, total: int, done: int, where: str, console: Console) -> Iterator[Callable[[str], None]]:
    last = time.monotonic()
    first: float | None = None
    before, at = 0, where

    def say(line: str) -> None:
        if logger.isEnabledFor(logging.INFO):
            logger.info(line)
        elif multiprocessing.parent_process() is None:
            # A command that no log is kept of.
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    def advance(where: str) -> None:
        nonlocal done, last, first, before, at
        done, at = done + 1, where
        now = time.monotonic()
        # What comes before the first step, such as imports, says nothing of the others.
        if first is None:
            first, before = now, done
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            left = f", {duration((now - first) / (done - before) * (total - done))} left" if done > before else ""
            say(f"{description}: {where}{left}")

    # The first step may be a long one.
    timer = threading.Timer(SECONDS_TO_FIRST_LINE, lambda: say(f"{description}: {at or 'begun'}"))
    timer.daemon = True
    timer.start()
    try:
        yield advance
    finally:
        timer.cancel()


def duration(seconds: float) -> str:
    """Write a duration as a person would.

    Example:
        >>> duration(41.7), duration(200), duration(7380)
        ('42 s', '3 min 20 s', '2 h 3 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
