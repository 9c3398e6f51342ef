"""Provenance in Kedro: every node's outputs are recorded, and no run reads what is not what it would make itself."""

from deephash_pipeline.freshness.graph import ProjectGraph, nodes_to_run, states
from deephash_pipeline.freshness.hook import Provenance, policy

__all__ = ["ProjectGraph", "Provenance", "nodes_to_run", "policy", "states"]
