"""Beside the stages: the paper's tables, out of what the runs of all benchmarks have left."""

from kedro.pipeline import Pipeline

from deephash_pipeline.pipelines.grid import NAMES_OF_PAPER
from deephash_pipeline.pipelines.paper_tables.nodes import BASELINE_TABLE, TITLES, write_paper_tables
from deephash_pipeline.pipelines.shared.bundles import node

WRITTEN = (f"{BASELINE_TABLE}_rows", *(f"{name}_{kind}" for name in TITLES for kind in ("rows", "page")))


def create_pipeline() -> Pipeline:
    """Write each table as rows (CSV) and page (Markdown).

    ::

        files of all benchmarks, tables as they are -> write_paper_tables -> paper_<name>_<kind>
    """
    inputs = ["metrics_of_benchmarks", "hand_crafted_of_benchmarks", "stored_paper_tables", NAMES_OF_PAPER]
    outputs = {written: f"paper_{written}" for written in WRITTEN}
    return Pipeline([node(write_paper_tables, inputs, outputs)])
