"""Tables, figures, gallery and page out of the cells' metrics."""

import platform
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image
from plotly.graph_objects import Figure
from pydantic import BaseModel, ConfigDict, Field

from deephash_pipeline import reports
from deephash_pipeline.deephash import Experiment
from deephash_pipeline.grid import DEEP_RIVALS, METHODS
from deephash_pipeline.methods import Cell
from deephash_pipeline.retrieval import CodeSets

Metrics = dict[str, Any]


class ReportingParameters(BaseModel):
    """What to show.

    Attributes:
        precision_recall_code_length: code length of the precision-recall figure; 32 in the paper.
        gallery_queries: rows of the gallery.
        gallery_neighbours: images retrieved for each of them.
        notes: paragraphs of the page, such as where the images come from.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    precision_recall_code_length: int = 32
    gallery_queries: int = Field(default=8, ge=1)
    gallery_neighbours: int = Field(default=10, ge=1)
    notes: tuple[str, ...] = ()


def tabulate_metrics(metrics: list[Metrics], experiment: Experiment) -> tuple[pd.DataFrame, ...]:
    """Lay out the figures of all cells.

    Returns:
        The mAP table (methods by code lengths), all figures in long form, and measured beside published mAP.
    """
    return (
        reports.map_table(metrics, METHODS).reset_index(),
        reports.metrics_table(metrics, METHODS),
        reports.comparison_table(metrics, experiment.benchmark, METHODS),
    )


def draw_map_by_code_length(metrics: list[Metrics]) -> Figure:
    """Draw mAP against code length, the paper's figure 4."""
    return reports.figure_map_by_code_length(metrics, METHODS)


def draw_precision_recall(curves: pd.DataFrame, parameters: ReportingParameters) -> Figure:
    """Draw precision against recall as the search radius grows, the paper's figure 5."""
    return reports.figure_precision_recall(curves, METHODS, parameters.precision_recall_code_length)


def draw_training_curves(*histories: pd.DataFrame) -> Figure:
    """Draw what was watched in both pre-training stages and in fine-tuning, epoch by epoch."""
    return reports.figure_training_curves(pd.concat(histories, ignore_index=True), METHODS, hidden=DEEP_RIVALS)


def draw_gallery(
    query_images: NDArray[np.uint8],
    query_labels: NDArray[np.int64],
    training_images: NDArray[np.uint8],
    training_labels: NDArray[np.int64],
    codes: CodeSets,
    class_names: list[str],
    parameters: ReportingParameters,
    experiment: Experiment,
) -> Image.Image:
    """Draw some queries with their nearest images."""
    return reports.retrieval_gallery(
        query_images,
        query_labels,
        training_images,
        training_labels,
        codes.query,
        codes.database,
        class_names,
        codes.code_length,
        queries=parameters.gallery_queries,
        neighbours=parameters.gallery_neighbours,
        seed=experiment.seed,
    )


def write_report(
    map_table: pd.DataFrame,
    comparison_table: pd.DataFrame,
    figure_map_by_code_length: Figure,
    figure_precision_recall: Figure,
    figure_training_curves: Figure,
    gallery: Image.Image,
    metrics: list[Metrics],
    gallery_cell: Cell,
    parameters: ReportingParameters,
    experiment: Experiment,
) -> str:
    """Compose one self-contained page."""
    summary = {
        "Benchmark": experiment.benchmark,
        "Network": experiment.network,
        "Queries": f"{metrics[0]['queries']:,}",
        "Database": f"{metrics[0]['database_size']:,} images, the training set",
        "Seed": str(experiment.seed),
        "Gallery": f"{METHODS[gallery_cell.method]}, {gallery_cell.code_length} bits",
        "Computed with": f"Python {platform.python_version()}, PyTorch {torch.__version__}",
    }
    figures = {
        "map_by_code_length": figure_map_by_code_length,
        "precision_recall": figure_precision_recall,
        "training_curves": figure_training_curves,
    }
    return reports.render_report(
        f"Deep hashing on {experiment.benchmark}",
        experiment.benchmark,
        summary,
        map_table.set_index("method"),
        comparison_table,
        figures,
        gallery,
        parameters.notes,
    )
