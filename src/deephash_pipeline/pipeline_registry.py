"""Which pipelines there are. Written out, because Kedro's search would look for a folder named ``full``.

Their names are known without their methods and libraries, which are imported when a pipeline is made.
"""
# ruff: noqa: PLC0415

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import (
    FIELD,
    FIELD_AT_A_GLANCE,
    FULL_AT_A_GLANCE,
    LONG_CODES,
    SEEDS,
    SHOWN_CODE_LENGTH,
    Cell,
    replicate_name,
)

OF_SEED = {
    *("trunk_weights", "softmax_weights", "pre_training_history", "pre_training_checkpoints"),
    *("training_z", "validation_z", "query_z"),
}
"""What cells share that depends on the seed of a replicate; of a further one it is named ``r2.trunk_weights``."""


OF_CELLS = ("baseline_hashing", "hash_layer_init", "fine_tuning", "evaluation")
"""Stages of cells alone, which a further seed has like the first."""

STAGES = ("data_ingestion", "cnn_pretraining", "feature_extraction", *OF_CELLS, "reporting")
"""The eight stages of a grid of cells, in their order."""

UP_TO_CODES = ("data_ingestion", "cnn_pretraining", "feature_extraction", "baseline_hashing")
"""Stages of images without labels."""

OTHERS = (
    *("descriptor_extraction", "hand_crafted", "comparison", "indexing", "measured_cells"),
    *("paper_tables", "references", "tuning", "tuning_results"),
)
"""What is run by its name and is no part of ``full``."""


class DeferredPipeline(Pipeline):
    """A pipeline that is made when something of it is first looked at: all of them together take two seconds.

    Args:
        create: function that makes it.

    >>> deferred = DeferredPipeline(partial(create_pipeline, "measured_cells"))
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
    ``field_at_32_bits`` is that of all methods, ``long_codes`` has them at 64 and 128 bits, for ``measured_cells``.
    ``without_labels`` is what images without labels can have: codes of the methods that learn from features alone, and
    no evaluation.

    Kedro asks for them several times in a command; they are made once.
    """
    return dict(create_pipelines())


@cache
def create_pipelines() -> dict[str, Pipeline]:
    """Create what `register_pipelines` registers."""
    names = (*STAGES, "full", FULL_AT_A_GLANCE, *OTHERS, FIELD, FIELD_AT_A_GLANCE, LONG_CODES, SEEDS, "without_labels")
    made: dict[str, Pipeline] = {name: DeferredPipeline(partial(create_pipeline, name)) for name in names}
    return {**made, "__default__": made["full"]}


def create_pipeline(name: str) -> Pipeline:
    """Create a pipeline by its name; one of `STAGES` or `OTHERS` is a namespace and a tag."""
    from deephash_pipeline.pipelines import grid

    if name in OTHERS:
        return _named(name, _module(name).create_pipeline())
    if name in STAGES:
        return create_stage(name, list(grid.cells(*grid.PAPER_METHODS)))
    if name == "full":
        return Pipeline([create_pipelines()[stage] for stage in STAGES])
    if name == SEEDS:
        return Pipeline(list(map(create_replicate, grid.FURTHER_REPLICATES)))
    if name == "without_labels":
        return Pipeline([create_stage(stage, list(grid.cells(*grid.WITHOUT_LABELS))) for stage in UP_TO_CODES])
    if name == LONG_CODES:
        long_cells = list(grid.cells(code_lengths=grid.LONG_CODE_LENGTHS))
        return Pipeline([_without_joined(create_stage(stage, long_cells)) for stage in STAGES if stage != "reporting"])
    methods, reported_as = (grid.PAPER_METHODS, None) if name == FULL_AT_A_GLANCE else (grid.METHODS, FIELD)
    cells = list(grid.cells(*methods, code_lengths=grid.CODE_LENGTHS if name == FIELD else [SHOWN_CODE_LENGTH]))
    return Pipeline([create_stage(stage, cells, reported_as) for stage in STAGES])


def create_stage(stage: str, grid: Sequence[Cell], reported_as: str | None = None) -> Pipeline:
    """Create a stage, a namespace and a tag; inside it a cell is a namespace ``<method>.b<bits>``.

    Args:
        stage: name, one of `STAGES`.
        grid: the cells that are made, measured and reported.
        reported_as: put before the names of `joined_datasets`, which depend on the whole grid: ``field.map_table``.
    """
    pipeline = _module(stage).create_pipeline(*([grid] if stage in OF_CELLS else []))
    return _named(stage, _prefixed(reported_as, joined_datasets(), pipeline) if reported_as else pipeline)


def create_replicate(replicate: int) -> Pipeline:
    """Create the stages of all methods once more, from pre-training to metrics, with another seed.

    The images and their splits are those of the first seed.
    """
    from deephash_pipeline.pipelines.grid import CLASSIFIER_BASELINE, replicated

    grid = list(replicated(replicate))
    name = replicate_name(replicate)
    classifier_cell = CLASSIFIER_BASELINE.model_copy(update={"replicate": replicate}).parameter
    inside: dict[str, Any] = {"namespace": name, "prefix_datasets_with_namespace": False}
    stages = {
        "cnn_pretraining": Pipeline(
            _module("cnn_pretraining").create_pipeline(further_replicate=True),
            parameters={"params:cell": f"params:{classifier_cell}"},
            **inside,
        ),
        "feature_extraction": Pipeline(_module("feature_extraction").create_pipeline(), **inside),
        **{stage: _module(stage).create_pipeline(grid) for stage in OF_CELLS},
    }
    return Pipeline([_named(stage, _prefixed(name, OF_SEED, _without_joined(own))) for stage, own in stages.items()])


@cache
def joined_datasets() -> set[str]:
    """Name what is made from all cells of a grid."""
    of_reporting = _module("reporting")
    return {
        *("all_metrics", "all_metrics_origin", "precision_recall_curves"),
        *(*of_reporting.TABLES, *of_reporting.FIGURES, "report"),
    }


def _without_joined(stage: Pipeline) -> Pipeline:
    """Leave out what is made from all cells of a grid."""
    return Pipeline([node for node in stage.nodes if not joined_datasets() & set(node.outputs)])


def _module(name: str) -> Any:
    return import_module(f"deephash_pipeline.pipelines.{name}.pipeline")


def _prefixed(prefix: str, datasets: set[str], stage: Pipeline) -> Pipeline:
    """Put a prefix before the names of some datasets, read or made; what shows names has those of all methods."""
    from deephash_pipeline.pipelines.grid import NAMES, NAMES_OF_PAPER

    read, made = (
        {name: f"{prefix}.{name}" for name in names & datasets} for names in (stage.inputs(), stage.all_outputs())
    )
    names = {NAMES_OF_PAPER: NAMES} if NAMES_OF_PAPER in stage.inputs() else {}
    return Pipeline(stage, inputs=read, outputs=made, parameters=names)


def _named(name: str, pipeline: Pipeline) -> Pipeline:
    """Make of a pipeline's name its namespace and its tag."""
    return Pipeline(pipeline, namespace=name, prefix_datasets_with_namespace=False, tags=name)
