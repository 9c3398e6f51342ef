"""After `tuning`: what the trials that are there come to."""

from kedro.pipeline import Pipeline

from deephash_pipeline.pipelines.shared.bundles import node
from deephash_pipeline.pipelines.tuning_results.nodes import collect_trials

TRIAL_TABLES = ["tuning_trials_table", "tuning_winners_table", "tuned_parameters"]


def create_pipeline() -> Pipeline:
    """found_trials -> collect_trials -> tables, tuned_parameters (YAML)."""
    return Pipeline([node(collect_trials, ["found_trials"], TRIAL_TABLES)])
