"""Provenance in Kedro: every node's outputs are recorded, and no run reads what is not what it would make itself."""

from deephash_pipeline.project.freshness.graph import ProjectGraph, is_up_to_date, nodes_to_run, states
from deephash_pipeline.project.freshness.hook import POLICY, Provenance, policy

__all__ = ["POLICY", "ProjectGraph", "Provenance", "is_up_to_date", "nodes_to_run", "policy", "states"]
