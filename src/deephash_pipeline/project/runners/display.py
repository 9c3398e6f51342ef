"""How far a run has come: one line on a terminal, a line a minute in a log."""

import logging
import threading
import time
from collections import Counter
from types import TracebackType
from typing import Self

from kedro.pipeline.node import Node
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from deephash_pipeline.common.progress import Steps, duration
from deephash_pipeline.project.runners.needs import cell_of, cost_of, kind_of
from deephash_pipeline.project.runners.schedule import Schedule

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 60.0
SECONDS_BETWEEN_FRAMES = 0.5
SHOWN_NODES = 4


class Pace:
    """How long nodes take, by what they cost and how long those of the same kind have taken.

    Kinds differ from benchmark to benchmark in what a unit of cost takes; one that was not seen yet goes by all others.
    """

    def __init__(self) -> None:
        self._costs: dict[str, float] = {}
        self._seconds: dict[str, float] = {}

    def copy(self) -> "Pace":
        """Copy what is known."""
        copy = Pace()
        copy._costs, copy._seconds = dict(self._costs), dict(self._seconds)
        return copy

    def add(self, node: Node, part: float, seconds: float) -> None:
        """Note how long a part of a node took."""
        if part:
            kind = kind_of(node)
            self._costs[kind] = self._costs.get(kind, 0.0) + part * cost_of(node)
            self._seconds[kind] = self._seconds.get(kind, 0.0) + seconds

    def __bool__(self) -> bool:
        """Whether anything was measured."""
        return any(self._seconds.values())

    def seconds_of(self, node: Node) -> float:
        """Estimate how long a whole node takes."""
        kind = kind_of(node)
        if kind in self._costs:
            return cost_of(node) * self._seconds[kind] / self._costs[kind]
        return cost_of(node) * sum(self._seconds.values()) / sum(self._costs.values())


class RunDisplay:
    """Shows cells done of all, the nodes that run and where they are, and the time left.

    Args:
        schedule: of the run.
        workers: how many nodes may run side by side.
        console: where to draw; standard error by default.
    """

    def __init__(self, schedule: Schedule, workers: int, console: Console | None = None) -> None:
        self._schedule = schedule
        self._workers = workers
        self._console = console or Console(stderr=True)
        self._lock = threading.RLock()
        self._nodes_of_cells = Counter(cell for node in schedule.nodes if (cell := cell_of(node)))
        self._cells = len(self._nodes_of_cells)
        self._began: dict[Node, float] = {}
        self._steps: dict[Node, Steps] = {}
        self._first: dict[Node, Steps] = {}
        self._pace = Pace()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Self:
        """Begin to show."""
        self._thread.start()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Show no more."""
        self._ended.set()
        self._thread.join()

    def start(self, node: Node) -> None:
        """Show a node as running."""
        with self._lock:
            self._began[node] = time.monotonic()

    def receive(self, node: Node, steps: Steps) -> None:
        """Note how far a node has come."""
        with self._lock:
            if node in self._began:
                self._steps[node] = steps
                self._first.setdefault(node, steps)

    def end(self, node: Node, done: bool) -> None:
        """Show a node no more."""
        with self._lock:
            seconds = time.monotonic() - self._began.pop(node)
            if done:
                self._pace.add(node, self._part(node), seconds)
            self._steps.pop(node, None)
            self._first.pop(node, None)
            cell = cell_of(node) if done else ""
            if cell:
                self._nodes_of_cells[cell] -= 1

    def line(self) -> str:
        """Say all in one line."""
        with self._lock:
            if self._cells:
                done = sum(not left for left in self._nodes_of_cells.values())
                parts = [f"{done} of {self._cells} cells"]
            else:
                parts = [f"{len(self._schedule.done)} of {len(self._schedule.nodes)} nodes"]
            shown = [self._described(node) for node in list(self._began)[:SHOWN_NODES]]
            if len(self._began) > SHOWN_NODES:
                shown.append(f"and {len(self._began) - SHOWN_NODES} more")
            left = self.seconds_left()
            return "; ".join([*parts, *shown] + ([] if left is None else [f"{duration(left)} left"]))

    def seconds_left(self) -> float | None:
        """Estimate the time left; None as long as nothing is done."""
        with self._lock:
            now, pace = time.monotonic(), self._pace.copy()
            shares = {node: self._share(node) for node in self._began}
            for node, share in shares.items():
                pace.add(node, share * self._part(node), now - self._began[node])
            if not pace:
                return None
            waiting, longest = self._schedule.cost_left(pace.seconds_of)
            begun = [pace.seconds_of(node) * self._part(node) * (1 - share) for node, share in shares.items()]
            return max((waiting + sum(begun)) / self._workers, longest, *begun, 0.0)

    def _part(self, node: Node) -> float:
        """Share of a node that is this run's: what an earlier one has done of it does not count."""
        first = self._first.get(node)
        return 1 - first.done / first.total if first and first.total else 1.0

    def _share(self, node: Node) -> float:
        first, last = self._first.get(node), self._steps.get(node)
        if first is None or last is None or last.total <= first.done:
            return 0.0
        return (last.done - first.done) / (last.total - first.done)

    def _described(self, node: Node) -> str:
        steps = self._steps.get(node)
        if steps is not None:
            return f"{steps.description} {steps.where}"
        *above, last = str(node.name).split(".")
        return f"{cell_of(node) or '.'.join(above)} {last}".strip()

    def _show(self) -> None:
        if self._console.is_terminal:
            columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
            with Progress(*columns, console=self._console, transient=True) as bar:
                task = bar.add_task("", total=len(self._schedule.nodes))
                while not self._ended.wait(SECONDS_BETWEEN_FRAMES):
                    bar.update(TaskID(task), completed=len(self._schedule.done), description=self.line())
        else:
            while not self._ended.wait(SECONDS_BETWEEN_LINES):
                logger.info("%s", self.line())
