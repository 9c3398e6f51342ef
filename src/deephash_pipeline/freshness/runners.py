"""Kedro's runners, which run of a pipeline only the nodes whose outputs are not up to date.

The hooks still see the whole pipeline: what was up to date is tracked and shown like what was made.
"""

import logging
from typing import Any

from kedro.pipeline import Pipeline
from kedro.runner import AbstractRunner
from kedro.runner import ParallelRunner as KedroParallelRunner
from kedro.runner import SequentialRunner as KedroSequentialRunner
from kedro.runner import ThreadRunner as KedroThreadRunner

from deephash_pipeline.freshness.graph import Catalog, nodes_to_run
from deephash_pipeline.freshness.hook import POLICY

logger = logging.getLogger(__name__)

ROUNDS = 3
"""What was missing and is made again as it was not before leaves something else to make."""


class _Skipping(AbstractRunner):
    @property
    def _logger(self) -> logging.Logger:
        return logging.getLogger("kedro.runner")

    def run(
        self,
        pipeline: Pipeline,
        catalog: Catalog,
        hook_manager: Any = None,
        run_id: str | None = None,
        only_missing_outputs: bool = False,
    ) -> dict[str, Any]:
        """Run the nodes that are not up to date, in the order of the graph."""
        outputs: dict[str, Any] = {}
        for _ in range(ROUNDS):
            waiting = nodes_to_run(pipeline, catalog, POLICY.stale_allowed)
            if not waiting:
                break
            if len(waiting) < len(pipeline.nodes):
                up_to_date = len(pipeline.nodes) - len(waiting)
                logger.info("%d nodes are up to date, %d are run", up_to_date, len(waiting))
            part = pipeline.only_nodes(*waiting)
            outputs = super().run(part, catalog, hook_manager, run_id, only_missing_outputs)
        return outputs


class SequentialRunner(_Skipping, KedroSequentialRunner):
    """One node after the other."""


class ThreadRunner(_Skipping, KedroThreadRunner):
    """Nodes in threads."""


class ParallelRunner(_Skipping, KedroParallelRunner):
    """Nodes in processes."""


RUNNERS = {kind.__name__: f"{__name__}.{kind.__name__}" for kind in (SequentialRunner, ThreadRunner, ParallelRunner)}
"""Name of Kedro's runner -> path of the one here."""
