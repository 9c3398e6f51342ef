"""Beside the stages: several seeds of several methods, compared."""

from kedro.pipeline import Pipeline

from deephash_pipeline.pipelines.comparison.nodes import compare_methods
from deephash_pipeline.pipelines.grid import NAMES_OF_ALL
from deephash_pipeline.pipelines.shared.bundles import node
from deephash_pipeline.pipelines.shared.searching import LABEL_SETS
from deephash_pipeline.reports.seeds import seeds_page


def create_pipeline() -> Pipeline:
    """codes_of_seeds (those that are there), labels -> compare_methods -> seeds_table -> page."""
    return Pipeline(
        [
            node(
                compare_methods,
                ["codes_of_seeds", LABEL_SETS, "params:protocol", "params:comparison", NAMES_OF_ALL],
                "seeds_table",
            ),
            node(
                seeds_page,
                ["seeds_table", "params:experiment.benchmark", "params:comparison"],
                "seeds_page",
                "write_page",
            ),
        ]
    )
