"""A parent run that is open, with its child runs."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deephash_pipeline.pipelines.grid import CLASSIFIER_BASELINE
from deephash_pipeline.project.tracking.description import is_number
from deephash_pipeline.project.tracking.store import CONFIGURATION_TAG, DATABASE, PARENT_TAG, Metric, MlflowStore

SCORE = "mean_average_precision"
SECONDS_BETWEEN_SCORES = 10.0
"""How often the parent run gets the scores of cells: each time costs as much as a cell of its own."""


@dataclass
class OpenRun:
    """The parent run of a `kedro run`, in its store.

    Attributes:
        store: of all runs.
        parent: identifier of the run.
        children: cell -> identifier of its child run, of those that are open.
    """

    store: MlflowStore
    parent: str
    children: dict[str, str] = field(default_factory=dict)
    _scores: dict[str, float] = field(default_factory=dict)
    _new_scores: dict[str, float] = field(default_factory=dict)
    _scores_logged: float = 0.0

    @classmethod
    def open(
        cls, project: Path, parameters: Mapping[str, str], tags: Mapping[str, str], new: bool = True
    ) -> "OpenRun | None":
        """Open the last run again if it was the same and was interrupted; else a new one, or none if `new` is false."""
        if not new and not (project / DATABASE).exists():
            return None
        store = MlflowStore(project, tags["benchmark"])
        run = store.resume(tags[CONFIGURATION_TAG])
        if run is not None:
            return cls(store, run, store.children(run))
        if not new:
            return None
        run = store.open(f"{tags['pipeline']} {tags['environment']}", tags)
        store.log(run, parameters=parameters)
        return cls(store, run)

    def child(self, cell: str, start: float | None) -> str:
        """Find or open the child run of a cell, which began at a time in seconds since the epoch, now by default."""
        if cell not in self.children:
            self.children[cell] = self.store.open(cell, {PARENT_TAG: self.parent}, start)
        return self.children[cell]

    def close_child(self, cell: str, status: str, end: float | None) -> None:
        """End the child run of a cell."""
        self.store.close(self.children.pop(cell), status, end)

    def close(self, status: str, ends: Mapping[str, float | None]) -> None:
        """End the run and the child runs that are still open, whose cells ended at the times given."""
        self.log_scores()
        for cell, end in ends.items():
            self.close_child(cell, status, end)
        self.store.close(self.parent, status)

    def note_scores(self, metrics: Mapping[str, Mapping[str, Any]]) -> None:
        """Take in the metrics of cells; what was noted is logged now and then."""
        found = {cell: of_cell[SCORE] for cell, of_cell in metrics.items() if is_number(of_cell.get(SCORE))}
        self._new_scores |= {cell: score for cell, score in found.items() if self._scores.get(cell) != score}
        if time.time() > self._scores_logged + SECONDS_BETWEEN_SCORES:
            self.log_scores()

    def log_scores(self) -> None:
        """Log each cell's mAP in the parent run, and the best of all methods with its cell."""
        new, self._new_scores = self._new_scores, {}
        self._scores |= new
        logged: list[Metric] = [(f"map/{cell}", score, 0) for cell, score in new.items()]
        # Not the classifier's own code, with any seed.
        classifier = f"{CLASSIFIER_BASELINE.namespace}."
        methods = {cell: score for cell, score in self._scores.items() if not f"{cell}.".startswith(classifier)}
        if new and methods:
            best = max(methods, key=methods.__getitem__)
            logged.append(("map/best", methods[best], 0))
            self.store.tag(self.parent, "best_cell", best)
        if logged:
            self.store.log(self.parent, logged)
            self._scores_logged = time.time()
