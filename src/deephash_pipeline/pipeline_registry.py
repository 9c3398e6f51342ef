"""Which pipelines there are. Written out, because Kedro's search would look for a folder named ``full``."""

from collections.abc import Sequence

from kedro.pipeline import Pipeline

from deephash_pipeline.grid import FIELD, PAPER_METHODS, SHOWN_CODE_LENGTH, cells
from deephash_pipeline.methods import Cell
from deephash_pipeline.pipelines import (
    baseline_hashing,
    cnn_pretraining,
    data_ingestion,
    descriptor_extraction,
    evaluation,
    feature_extraction,
    fine_tuning,
    hand_crafted,
    hash_layer_init,
    held_out_evaluation,
    measured_cells,
    paper_tables,
    reporting,
)

JOINED = {
    "fine_tuning_history",
    "all_metrics",
    "precision_recall_curves",
    *reporting.TABLES,
    *reporting.FIGURES,
    "report",
}
"""What is made from all cells of a grid."""


def register_pipelines() -> dict[str, Pipeline]:
    """Register each stage by its name, ``full`` with all of them, ``field`` with more methods, and others.

    ``full`` has the methods of the paper's tables. ``field`` has all there are: it shares the cells of ``full``, and
    what it joins and reports has names and files of its own. ``full_at_32_bits`` is a quick run, and the picture that
    ``make viz`` opens with: with five code lengths the codes that walk between the stages hide the stages.
    """
    stages = create_stages(list(cells(*PAPER_METHODS)))
    full = Pipeline(list(stages.values()))
    glance = Pipeline(list(create_stages(list(cells(*PAPER_METHODS, code_lengths=[SHOWN_CODE_LENGTH]))).values()))
    field = Pipeline(list(create_stages(list(cells()), reported_as=FIELD).values()))
    return {
        **stages,
        "full": full,
        f"full_at_{SHOWN_CODE_LENGTH}_bits": glance,
        FIELD: field,
        **create_others(),
        "__default__": full,
    }


def create_stages(grid: Sequence[Cell], reported_as: str | None = None) -> dict[str, Pipeline]:
    """Create the eight stages, each a namespace and a tag; inside it a cell is a namespace ``<method>.b<bits>``.

    Args:
        grid: the cells that are made, measured and reported.
        reported_as: put before the names of what depends on the whole grid, `JOINED`, as in ``field.map_table``.
    """
    stages = {
        "data_ingestion": data_ingestion.create_pipeline(),
        "cnn_pretraining": cnn_pretraining.create_pipeline(),
        "feature_extraction": feature_extraction.create_pipeline(),
        "baseline_hashing": baseline_hashing.create_pipeline(grid),
        "hash_layer_init": hash_layer_init.create_pipeline(grid),
        "fine_tuning": fine_tuning.create_pipeline(grid),
        "evaluation": evaluation.create_pipeline(grid),
        "reporting": reporting.create_pipeline(),
    }
    if reported_as:
        stages = {name: _reported_as(reported_as, stage) for name, stage in stages.items()}
    return _named(stages)


def create_others() -> dict[str, Pipeline]:
    """Create what is run by its name and is no part of ``full``."""
    return _named(
        {
            "descriptor_extraction": descriptor_extraction.create_pipeline(),
            "hand_crafted": hand_crafted.create_pipeline(),
            "held_out_evaluation": held_out_evaluation.create_pipeline(),
            "measured_cells": measured_cells.create_pipeline(),
            "paper_tables": paper_tables.create_pipeline(),
        }
    )


def _reported_as(prefix: str, stage: Pipeline) -> Pipeline:
    """Put a prefix before the names of `JOINED`, read or made."""
    read, made = (
        {name: f"{prefix}.{name}" for name in names & JOINED} for names in (stage.inputs(), stage.all_outputs())
    )
    return Pipeline(stage, inputs=read, outputs=made)


def _named(pipelines: dict[str, Pipeline]) -> dict[str, Pipeline]:
    """Make of each pipeline's name its namespace and its tag."""
    return {
        name: Pipeline(pipeline, namespace=name, prefix_datasets_with_namespace=False, tags=name)
        for name, pipeline in pipelines.items()
    }
