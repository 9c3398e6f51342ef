"""Runners: the nodes of a run side by side or one after the other, with equal results bit for bit.

`run_node` is what every worker does, in whatever process or machine; a `Job`, which `cloudpickle` can send, is what it
needs besides the node. `GridRunner` is the part that all runners share.
"""

from deephash_pipeline.project.runners.ray import RayRunner
from deephash_pipeline.project.runners.runner import GridRunner, ParallelRunner, SequentialRunner

RUNNERS = {kind.__name__: f"{__name__}.{kind.__name__}" for kind in (ParallelRunner, RayRunner, SequentialRunner)}
"""Name of Kedro's runner -> path of the one here."""

__all__ = ["RUNNERS", "GridRunner", "ParallelRunner", "RayRunner", "SequentialRunner"]
