"""Which pipelines there are. Written out, because Kedro's search would look for a folder named ``full``."""

from collections.abc import Sequence

from kedro.pipeline import Pipeline

from deephash_pipeline.grid import (
    CLASSIFIER_BASELINE,
    CODE_LENGTHS,
    FIELD,
    FURTHER_REPLICATES,
    PAPER_METHODS,
    SHOWN_CODE_LENGTH,
    cells,
    check_code_lengths,
    replicated,
)
from deephash_pipeline.methods import Cell, replicate_name
from deephash_pipeline.pipelines import (
    baseline_hashing,
    cnn_pretraining,
    comparison,
    data_ingestion,
    descriptor_extraction,
    evaluation,
    feature_extraction,
    fine_tuning,
    hand_crafted,
    hash_layer_init,
    measured_cells,
    paper_tables,
    reporting,
    tuning,
    tuning_results,
)

JOINED = {
    "fine_tuning_history",
    "all_metrics",
    "all_metrics_origin",
    "precision_recall_curves",
    *reporting.TABLES,
    *reporting.FIGURES,
    "report",
}
"""What is made from all cells of a grid."""

OF_SEED = {
    *("trunk_weights", "softmax_weights", "pre_training_history", "pre_training_checkpoints"),
    *("training_z", "validation_z", "query_z"),
}
"""What cells share that depends on the seed of a replicate; of a further one it is named ``r2.trunk_weights``."""


def register_pipelines() -> dict[str, Pipeline]:
    """Register each stage by its name, ``full`` with all of them, ``field`` with more methods, and others.

    ``full`` has the methods of the paper's tables. ``field`` has all there are: it shares the cells of ``full``, and
    what it joins and reports has names and files of its own. ``full_at_32_bits`` is a quick run, and the picture that
    ``make viz`` opens with: with five code lengths the codes that walk between the stages hide the stages.
    """
    check_code_lengths(CODE_LENGTHS)
    stages = create_stages(list(cells(*PAPER_METHODS)))
    full = Pipeline(list(stages.values()))
    glance = Pipeline(list(create_stages(list(cells(*PAPER_METHODS, code_lengths=[SHOWN_CODE_LENGTH]))).values()))
    field = Pipeline(list(create_stages(list(cells()), reported_as=FIELD).values()))
    return {
        **stages,
        "full": full,
        f"full_at_{SHOWN_CODE_LENGTH}_bits": glance,
        FIELD: field,
        "seeds": Pipeline([create_replicate(replicate) for replicate in FURTHER_REPLICATES]),
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
        stages = {name: _prefixed(reported_as, JOINED, stage) for name, stage in stages.items()}
    return _named(stages)


def create_replicate(replicate: int) -> Pipeline:
    """Create the stages of all methods once more, from pre-training to metrics, with another seed.

    The images and their splits are those of the first seed.
    """
    grid, of_grid = list(replicated(replicate)), JOINED | {"hash_layer_init_history"}
    name = replicate_name(replicate)
    classifier_cell = CLASSIFIER_BASELINE.model_copy(update={"replicate": replicate}).parameter
    shared = {
        "cnn_pretraining": Pipeline(
            cnn_pretraining.create_pipeline(further_replicate=True),
            parameters={"params:cell": f"params:{classifier_cell}"},
        ),
        "feature_extraction": feature_extraction.create_pipeline(),
    }
    stages = {
        **{
            stage: Pipeline(pipeline, namespace=name, prefix_datasets_with_namespace=False)
            for stage, pipeline in shared.items()
        },
        "baseline_hashing": baseline_hashing.create_pipeline(grid),
        "hash_layer_init": hash_layer_init.create_pipeline(grid),
        "fine_tuning": fine_tuning.create_pipeline(grid),
        "evaluation": evaluation.create_pipeline(grid),
    }
    of_cells = {
        stage: Pipeline([node for node in pipeline.nodes if not of_grid & set(node.outputs)])
        for stage, pipeline in stages.items()
    }
    return Pipeline(list(_named({stage: _prefixed(name, OF_SEED, own) for stage, own in of_cells.items()}).values()))


def create_others() -> dict[str, Pipeline]:
    """Create what is run by its name and is no part of ``full``."""
    return _named(
        {
            "descriptor_extraction": descriptor_extraction.create_pipeline(),
            "hand_crafted": hand_crafted.create_pipeline(),
            "comparison": comparison.create_pipeline(),
            "measured_cells": measured_cells.create_pipeline(),
            "paper_tables": paper_tables.create_pipeline(),
            "tuning": tuning.create_pipeline(),
            "tuning_results": tuning_results.create_pipeline(),
        }
    )


def _prefixed(prefix: str, datasets: set[str], stage: Pipeline) -> Pipeline:
    """Put a prefix before the names of some datasets, read or made."""
    read, made = (
        {name: f"{prefix}.{name}" for name in names & datasets} for names in (stage.inputs(), stage.all_outputs())
    )
    return Pipeline(stage, inputs=read, outputs=made)


def _named(pipelines: dict[str, Pipeline]) -> dict[str, Pipeline]:
    """Make of each pipeline's name its namespace and its tag."""
    return {
        name: Pipeline(pipeline, namespace=name, prefix_datasets_with_namespace=False, tags=name)
        for name, pipeline in pipelines.items()
    }
