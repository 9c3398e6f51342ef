"""Which pipelines there are. Written out, because Kedro's search would look for a folder named ``full``."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

from kedro.pipeline import Pipeline

from deephash_pipeline.grid import (
    CLASSIFIER_BASELINE,
    CODE_LENGTHS,
    FIELD,
    FIELD_AT_A_GLANCE,
    FULL_AT_A_GLANCE,
    FURTHER_REPLICATES,
    PAPER_METHODS,
    SEEDS,
    SHOWN_CODE_LENGTH,
    WITHOUT_LABELS,
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
    indexing,
    measured_cells,
    paper_tables,
    references,
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


STAGES: dict[str, Callable[[Sequence[Cell]], Pipeline]] = {
    "data_ingestion": lambda grid: data_ingestion.create_pipeline(),
    "cnn_pretraining": lambda grid: cnn_pretraining.create_pipeline(),
    "feature_extraction": lambda grid: feature_extraction.create_pipeline(),
    "baseline_hashing": baseline_hashing.create_pipeline,
    "hash_layer_init": hash_layer_init.create_pipeline,
    "fine_tuning": fine_tuning.create_pipeline,
    "evaluation": evaluation.create_pipeline,
    "reporting": lambda grid: reporting.create_pipeline(),
}
"""The eight stages of a grid of cells, in their order."""

UP_TO_CODES = ("data_ingestion", "cnn_pretraining", "feature_extraction", "baseline_hashing")
"""Stages of images without labels."""

OTHERS: dict[str, Callable[[], Pipeline]] = {
    "descriptor_extraction": descriptor_extraction.create_pipeline,
    "hand_crafted": hand_crafted.create_pipeline,
    "comparison": comparison.create_pipeline,
    "indexing": indexing.create_pipeline,
    "measured_cells": measured_cells.create_pipeline,
    "paper_tables": paper_tables.create_pipeline,
    "references": references.create_pipeline,
    "tuning": tuning.create_pipeline,
    "tuning_results": tuning_results.create_pipeline,
}
"""What is run by its name and is no part of ``full``."""


OF_REPLICATES = ("baseline_hashing", "hash_layer_init", "fine_tuning", "evaluation")
"""Stages of cells alone, which a further seed has like the first."""


class DeferredPipeline(Pipeline):
    """A pipeline that is made when something of it is first looked at: all of them together take two seconds.

    Args:
        create: makes it.

    >>> deferred = DeferredPipeline(measured_cells.create_pipeline)
    >>> vars(deferred).keys()
    dict_keys(['_create'])
    >>> len(deferred.nodes)
    1
    """

    def __init__(self, create: Callable[[], Pipeline]) -> None:
        self._create = create

    def __getattr__(self, name: str) -> Any:
        """Make the pipeline, whose attributes are from then on those of this one."""
        create = vars(self).get("_create")
        if create is None or name.startswith("__"):
            raise AttributeError(name)
        made = create()
        vars(self).clear()
        vars(self).update(vars(made))
        return getattr(self, name)


def register_pipelines() -> dict[str, Pipeline]:
    """Register each stage by its name, ``full`` with all of them, ``field`` with more methods, and others.

    ``full`` has the methods of the paper's tables. ``field`` has all there are: it shares the cells of ``full``, and
    what it joins and reports has names and files of its own. ``full_at_32_bits`` is a quick run, and the picture that
    ``make viz`` opens with: with five code lengths the codes that walk between the stages hide the stages.
    ``field_at_32_bits`` is that of all methods. ``without_labels`` is what images without labels can have: codes of
    the methods that learn from features alone, and no evaluation.

    Kedro asks for them several times in a command; they are made once.
    """
    return dict(create_pipelines())


@cache
def create_pipelines() -> dict[str, Pipeline]:
    """Create what `register_pipelines` registers."""
    check_code_lengths(CODE_LENGTHS)
    grid = list(cells(*PAPER_METHODS))
    stages = {stage: DeferredPipeline(partial(create_stage, stage, grid)) for stage in STAGES}
    full = DeferredPipeline(lambda: Pipeline(list(stages.values())))
    return {
        **stages,
        "full": full,
        FULL_AT_A_GLANCE: DeferredPipeline(
            lambda: create_stages(list(cells(*PAPER_METHODS, code_lengths=[SHOWN_CODE_LENGTH])))
        ),
        **{name: DeferredPipeline(partial(create_other, name)) for name in OTHERS},
        FIELD: DeferredPipeline(lambda: create_stages(list(cells()), reported_as=FIELD)),
        FIELD_AT_A_GLANCE: DeferredPipeline(
            lambda: create_stages(list(cells(code_lengths=[SHOWN_CODE_LENGTH])), reported_as=FIELD)
        ),
        SEEDS: DeferredPipeline(lambda: Pipeline(list(map(create_replicate, FURTHER_REPLICATES)))),
        "without_labels": DeferredPipeline(
            lambda: Pipeline([create_stage(stage, list(cells(*WITHOUT_LABELS))) for stage in UP_TO_CODES])
        ),
        "__default__": full,
    }


def create_stages(grid: Sequence[Cell], reported_as: str | None = None) -> Pipeline:
    """Create the eight stages of a grid as one pipeline."""
    return Pipeline([create_stage(stage, grid, reported_as) for stage in STAGES])


def create_stage(stage: str, grid: Sequence[Cell], reported_as: str | None = None) -> Pipeline:
    """Create a stage, a namespace and a tag; inside it a cell is a namespace ``<method>.b<bits>``.

    Args:
        stage: key of `STAGES`.
        grid: the cells that are made, measured and reported.
        reported_as: put before the names of what depends on the whole grid, `JOINED`, as in ``field.map_table``.
    """
    pipeline = STAGES[stage](grid)
    return _named(stage, _prefixed(reported_as, JOINED, pipeline) if reported_as else pipeline)


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
        **{stage: STAGES[stage](grid) for stage in OF_REPLICATES},
    }
    of_cells = {
        stage: Pipeline([node for node in pipeline.nodes if not of_grid & set(node.outputs)])
        for stage, pipeline in stages.items()
    }
    return Pipeline([_named(stage, _prefixed(name, OF_SEED, own)) for stage, own in of_cells.items()])


def create_other(name: str) -> Pipeline:
    """Create a pipeline of `OTHERS`, a namespace and a tag too."""
    return _named(name, OTHERS[name]())


def _prefixed(prefix: str, datasets: set[str], stage: Pipeline) -> Pipeline:
    """Put a prefix before the names of some datasets, read or made."""
    read, made = (
        {name: f"{prefix}.{name}" for name in names & datasets} for names in (stage.inputs(), stage.all_outputs())
    )
    return Pipeline(stage, inputs=read, outputs=made)


def _named(name: str, pipeline: Pipeline) -> Pipeline:
    """Make of a pipeline's name its namespace and its tag."""
    return Pipeline(pipeline, namespace=name, prefix_datasets_with_namespace=False, tags=name)
