"""Progress of long loops: a bar on a terminal, a plain line now and then in a log."""

import logging
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 30.0

Item = TypeVar("Item")


def track(items: Iterable[Item], description: str, total: int, console: Console | None = None) -> Iterator[Item]:
    """Yield `items` while showing how many of `total` are done.

    Args:
        items: what to iterate over.
        description: what one sees, such as ``"deephash.b48"``.
        total: number of items expected.
        console: where to draw; standard error by default.
    """
    console = console or Console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            yield from bar.track(items, total=total, description=description)
        return
    last = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            logger.info("%s: %d of %d", description, done, total)
