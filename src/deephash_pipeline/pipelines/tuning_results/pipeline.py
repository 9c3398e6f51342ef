"""After `tuning`: what the trials that are there come to."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.pipelines.grid import NAMES
from deephash_pipeline.pipelines.tuning_results.nodes import collect_trials, draw_progress, draw_values

TABLES = ["tuning_trials_table", "tuning_winners_table", "tuned_parameters"]


def create_pipeline() -> Pipeline:
    """found_trials -> collect_trials -> tables, tuned_parameters (YAML) -> figures."""
    return Pipeline(
        [
            Node(collect_trials, inputs="found_trials", outputs=TABLES, name="collect_trials"),
            Node(draw_progress, inputs=[TABLES[0], NAMES], outputs="figure_tuning_progress", name="draw_progress"),
            Node(draw_values, inputs=[TABLES[0], NAMES], outputs="figure_tuning_rates", name="draw_values"),
        ]
    )
