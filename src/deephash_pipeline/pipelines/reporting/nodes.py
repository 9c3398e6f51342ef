"""Tables, figures, gallery and page out of the cells' metrics."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas as pd
from plotly.graph_objects import Figure

from deephash_pipeline.common.cell import SHOWN_CODE_LENGTH, Cell
from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.deephash.training_set import LabelledImages, TrainingSet
from deephash_pipeline.pipelines.grid import METHOD_GROUPS
from deephash_pipeline.pipelines.shared.searching import Sets, searched, searched_images
from deephash_pipeline.provenance import Origin
from deephash_pipeline.reports.cells import cell_protocol
from deephash_pipeline.reports.figures import figure_map_by_code_length, figure_precision_recall
from deephash_pipeline.reports.gallery import CodedImages, retrieval_gallery
from deephash_pipeline.reports.notes import notes_on_cells
from deephash_pipeline.reports.page import Report, ReportingParameters, render_report
from deephash_pipeline.reports.tables import (
    by_other_protocols,
    comparison_table,
    map_table,
    metrics_table,
    protocols_table,
)
from deephash_pipeline.retrieval import CodeSets
from deephash_pipeline.retrieval.protocols import require_protocol

MetricsOfCell = dict[str, Any]


def tabulate_metrics(
    metrics: list[MetricsOfCell],
    unseen: Mapping[str, MetricsOfCell],
    references: Mapping[str, list[MetricsOfCell]],
    experiment: Experiment,
    names: dict[str, str],
) -> tuple[pd.DataFrame, ...]:
    """Lay out the metrics of all cells.

    Args:
        metrics: metrics of the cells.
        unseen: metrics of the cells that were run on the same benchmark with unseen classes, by their files' names.
        references: metrics of what is no code, see the pipeline `references`, by their files' names.
        experiment: configuration that says which benchmark it is.
        names: method -> name, of all methods that may be among the cells.

    Returns:
        The mAP table (methods by code lengths), all metrics in long form, measured beside published mAP, and mAP by all
        protocols.
    """
    own = {(cell["method"], cell["code_length"]) for cell in metrics}
    of_own = [cell for cell in unseen.values() if (cell["method"], cell["code_length"]) in own]
    return (
        map_table(metrics, names, [cell for cells in references.values() for cell in cells]).reset_index(),
        metrics_table(metrics, names),
        comparison_table(metrics, experiment.benchmark, names),
        protocols_table(metrics, of_own),
    )


def draw_map_by_code_length(metrics: list[MetricsOfCell], names: dict[str, str]) -> Figure:
    """Draw mAP against code length, the paper's figure 4."""
    return figure_map_by_code_length(metrics, names, METHOD_GROUPS)


def draw_precision_recall(curves: pd.DataFrame, names: dict[str, str]) -> Figure:
    """Draw precision against recall as the search radius grows, the paper's figure 5."""
    return figure_precision_recall(curves, names, METHOD_GROUPS, SHOWN_CODE_LENGTH)


class ImageSets(NamedTuple):
    """The images of a benchmark."""

    queries: LabelledImages
    training_set: TrainingSet
    validation_set: LabelledImages


def draw_gallery(sets: ImageSets, codes: CodeSets, protocol: str, seed: int) -> str:
    """Show some queries with their nearest images."""
    queries, training_set, validation_set = sets
    by = require_protocol(protocol)
    database = searched(by, codes, Sets(queries.labels, training_set.labels, validation_set.labels))
    images = searched_images(by, training_set.images, validation_set.images)
    return retrieval_gallery(
        CodedImages(queries.images, queries.labels, codes.query),
        CodedImages(images, database.labels, database.codes),
        list(training_set.class_names),
        codes.code_length,
        seed,
    )


def described_origin(origin: Origin | None) -> dict[str, str]:
    """Name network, seed, version, commit and command of what has a manifest; nothing of what has none.

    Precision is named where any training had another than float32.

    Example:
        >>> described_origin(Origin("measure", parameters={"experiment.seed": 42}, code={"git_commit": "0abc"}))
        {'Seed': '42', 'Git commit': '0abc'}
    """
    if origin is None:
        return {}
    known = origin.parameters
    shown = {name: known[f"experiment.{name}"] for name in ("network", "seed") if f"experiment.{name}" in known}
    precisions = {value for name, value in known.items() if name.endswith(".training.precision")}
    shown |= {"precision": ", ".join(sorted(precisions))} if precisions - {"float32"} else {}
    shown |= {**origin.code, **({"command": origin.command} if origin.command else {})}
    return {name.replace("_", " ").capitalize(): str(value) for name, value in shown.items()}


class ReportContent(NamedTuple):
    """What the page shows."""

    map_table: pd.DataFrame
    comparison_table: pd.DataFrame
    protocols_table: pd.DataFrame
    map_by_code_length: Figure
    precision_recall: Figure
    gallery: str


class MeasuredCells(NamedTuple):
    """The metrics of the cells, what their manifest says of how they were made, and the names of their methods."""

    metrics: list[MetricsOfCell]
    origin: Origin | None
    names: dict[str, str]


def write_report(
    content: ReportContent,
    measured: MeasuredCells,
    gallery_cell: Cell,
    parameters: ReportingParameters,
    experiment: Experiment,
) -> str:
    """Compose one self-contained page."""
    metrics, made_with = measured.metrics, described_origin(measured.origin)
    protocol = cell_protocol(metrics[0])
    summary = {
        "Benchmark": experiment.benchmark,
        "Network": made_with.get("Network", "not recorded"),
        "Queries": f"{metrics[0]['queries']:,}",
        "Database": f"{metrics[0]['database_size']:,} images",
        "Protocol": protocol.name,
        "Gallery": f"{measured.names[gallery_cell.method]}, {gallery_cell.code_length} bits",
        **parameters.written,
    }
    figures = {name: getattr(content, name) for name in ("map_by_code_length", "precision_recall")}
    report = Report(
        experiment.benchmark,
        protocol,
        summary,
        content.map_table.set_index("method"),
        content.comparison_table,
        measured.names,
        by_other_protocols(content.protocols_table, measured.names),
        figures,
        content.gallery,
        made_with,
        [*notes_on_cells(metrics, measured.names), *parameters.notes],
    )
    return render_report(f"Deep hashing on {experiment.benchmark}", report)
