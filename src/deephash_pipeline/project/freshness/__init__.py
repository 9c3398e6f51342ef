"""Provenance in Kedro: every node's outputs are recorded, and no run reads what is not what it would make itself."""

from deephash_pipeline.project.freshness.graph import ProjectGraph
from deephash_pipeline.project.freshness.hook import Provenance
from deephash_pipeline.project.freshness.waiting import nodes_to_run, states

__all__ = ["ProjectGraph", "Provenance", "nodes_to_run", "states"]
