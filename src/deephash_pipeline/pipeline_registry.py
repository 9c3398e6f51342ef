"""Which pipelines there are. Written out, because Kedro's search would look for a folder named ``full``.

Their names are known without their methods and libraries, which are imported when a pipeline is made.
"""
# ruff: noqa: PLC0415

from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import Any

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import SHOWN_CODE_LENGTH, Cell
from deephash_pipeline.pipelines.names import FIELD, FIELD_AT_A_GLANCE, FULL_AT_A_GLANCE, LONG_CODES

OF_CELLS = ("baseline_hashing", "hash_layer_init", "fine_tuning", "evaluation")
"""Stages of cells."""

JOINING, REPORTING = "evaluation", "reporting"
"""Stages that join what all cells of a grid have made."""

STAGES = ("data_ingestion", "cnn_pretraining", "feature_extraction", *OF_CELLS, REPORTING)
"""The eight stages of a grid of cells, in their order."""

UP_TO_CODES = ("data_ingestion", "cnn_pretraining", "feature_extraction", "baseline_hashing")
"""Stages of images without labels."""

OTHER_PIPELINES = (
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
    names = (
        *STAGES,
        "full",
        FULL_AT_A_GLANCE,
        *OTHER_PIPELINES,
        FIELD,
        FIELD_AT_A_GLANCE,
        LONG_CODES,
        "without_labels",
    )
    made: dict[str, Pipeline] = {name: DeferredPipeline(partial(create_pipeline, name)) for name in names}
    return {**made, "__default__": made["full"]}


def create_pipeline(name: str) -> Pipeline:
    """Create a pipeline by its name; one of `STAGES` or `OTHER_PIPELINES` is a namespace and a tag."""
    from deephash_pipeline.pipelines import grid

    if name in OTHER_PIPELINES:
        return _named(name, _module(name).create_pipeline())
    if name in STAGES:
        return create_stage(name, list(grid.cells(*grid.PAPER_METHODS)))
    if name == "full":
        return Pipeline([create_pipelines()[stage] for stage in STAGES])
    if name == "without_labels":
        return Pipeline([create_stage(stage, list(grid.cells(*grid.WITHOUT_LABELS))) for stage in UP_TO_CODES])
    if name == LONG_CODES:
        long_cells = list(grid.cells(code_lengths=grid.LONG_CODE_LENGTHS))
        stages = [stage for stage in STAGES if stage != REPORTING]
        return Pipeline([create_stage(stage, long_cells, prefix=None) for stage in stages])
    methods, prefix = (grid.PAPER_METHODS, "") if name == FULL_AT_A_GLANCE else (grid.METHODS, f"{FIELD}.")
    cells = list(grid.cells(*methods, code_lengths=grid.CODE_LENGTHS if name == FIELD else [SHOWN_CODE_LENGTH]))
    return Pipeline([create_stage(stage, cells, prefix) for stage in STAGES])


def create_stage(stage: str, grid: Sequence[Cell], prefix: str | None = "") -> Pipeline:
    """Create a stage, a namespace and a tag; inside it a cell is a namespace ``<method>.b<bits>``.

    Args:
        stage: name, one of `STAGES`.
        grid: the cells that are made, measured and reported.
        prefix: stands before the names of what depends on the whole grid: ``field.map_table``, which shows the names
            of all methods. None if nothing is joined.
    """
    from deephash_pipeline.pipelines.grid import NAMES_OF_ALL, NAMES_OF_PAPER

    module = _module(stage)
    if stage == REPORTING:
        made = module.create_pipeline(prefix, NAMES_OF_ALL if prefix else NAMES_OF_PAPER)
    else:
        made = module.create_pipeline(*([grid] if stage in OF_CELLS else []))
    if stage == JOINING and prefix is not None:
        made += module.create_joining(grid, prefix)
    return _named(stage, made)


def _module(name: str) -> Any:
    return import_module(f"deephash_pipeline.pipelines.{name}.pipeline")


def _named(name: str, pipeline: Pipeline) -> Pipeline:
    """Make of a pipeline's name its namespace and its tag."""
    return Pipeline(pipeline, namespace=name, prefix_datasets_with_namespace=False, tags=name)
