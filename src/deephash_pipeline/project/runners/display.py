"""How far a run has come: one line on a terminal, a line a minute in a log."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kedro.pipeline.node import Node
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from deephash_pipeline.common.progress import Steps, duration
from deephash_pipeline.project.runners.schedule import Schedule, cell_of

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 60.0
SECONDS_BETWEEN_FRAMES = 0.5
SHOWN_NODES = 4


class RunDisplay:
    """Shows cells done of all, the time that has passed, and the nodes that run and where they are.

    Args:
        schedule: schedule of the run.
        console: where to draw; standard error by default.
    """

    def __init__(self, schedule: Schedule, console: Console | None = None) -> None:
        self._schedule = schedule
        self._console = console or Console(stderr=True)
        self._began = time.monotonic()
        self._steps: dict[str, Steps] = {}
        self._ended = threading.Event()

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show it inside the block."""
        thread = threading.Thread(target=self._show, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def receive(self, node: Node, steps: Steps) -> None:
        """Note how far a node has come."""
        self._steps[node.name] = steps

    def line(self) -> str:
        """Say all in one line."""
        # Copies: this is asked from a thread of its own.
        done, running = set(self._schedule.done), list(self._schedule.running)
        nodes = self._schedule.nodes
        cells = set(map(cell_of, nodes)) - {""}
        unfinished = {cell_of(node) for node in nodes if node not in done}
        count = f"{len(cells - unfinished)} of {len(cells)} cells" if cells else f"{len(done)} of {len(nodes)} nodes"
        shown = [self._described(node) for node in running[:SHOWN_NODES]]
        if len(running) > SHOWN_NODES:
            shown.append(f"and {len(running) - SHOWN_NODES} more")
        return "; ".join([f"{count} after {duration(time.monotonic() - self._began)}", *shown])

    def _described(self, node: Node) -> str:
        steps = self._steps.get(node.name)
        if steps is not None:
            return f"{steps.description} {steps.where}"
        *above, last = str(node.name).split(".")
        return f"{cell_of(node) or '.'.join(above)} {last}".strip()

    def _show(self) -> None:
        if not self._console.is_terminal:
            while not self._ended.wait(SECONDS_BETWEEN_LINES):
                logger.info("%s", self.line())
            return
        columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
        with Progress(*columns, console=self._console, transient=True) as bar:
            task = bar.add_task("", total=len(self._schedule.nodes))
            while not self._ended.wait(SECONDS_BETWEEN_FRAMES):
                bar.update(task, completed=len(self._schedule.done), description=self.line())
