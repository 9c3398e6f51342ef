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

from deephash_pipeline.progress import Steps, duration
from deephash_pipeline.runners.needs import cell_of, cost_of, kind_of
from deephash_pipeline.runners.schedule import Schedule

logger = logging.getLogger(__name__)

SECONDS_BETWEEN_LINES = 60.0
SECONDS_BETWEEN_FRAMES = 0.5
SHOWN_NODES = 4


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
        self._costs: dict[str, float] = {}
        self._seconds: dict[str, float] = {}
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
                self._measure(node, 1.0, seconds, self._costs, self._seconds)
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
        """Estimate the time left; None as long as nothing is done.

        From how long nodes of the same kind have taken, for they differ from benchmark to benchmark; of a kind that
        has not run yet, from the costs of nodes and the speed of all others.
        """
        with self._lock:
            now, costs, seconds = time.monotonic(), dict(self._costs), dict(self._seconds)
            shares = {node: self._share(node) for node in self._began}
            for node, share in shares.items():
                self._measure(node, share, now - self._began[node], costs, seconds)
            cost, spent = sum(costs.values()), sum(seconds.values())
            if not cost or not spent:
                return None

            def seconds_of(node: Node) -> float:
                kind = kind_of(node)
                return cost_of(node) * (seconds[kind] / costs[kind] if kind in costs else spent / cost)

            waiting, longest = self._schedule.cost_left(seconds_of)
            begun = [seconds_of(node) * self._part(node) * (1 - share) for node, share in shares.items()]
            return max((waiting + sum(begun)) / self._workers, longest, *begun, 0.0)

    def _measure(
        self, node: Node, share: float, spent: float, costs: dict[str, float], seconds: dict[str, float]
    ) -> None:
        """Add a share of what a node costs in this run, and how long it took, to what is known of its kind."""
        kind, cost = kind_of(node), share * self._part(node) * cost_of(node)
        if cost:
            costs[kind] = costs.get(kind, 0.0) + cost
            seconds[kind] = seconds.get(kind, 0.0) + spent

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
