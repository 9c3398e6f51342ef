"""Show what came out."""

from kedro.pipeline import Pipeline

from deephash_pipeline.pipelines.grid import GALLERY, NAMES_OF_PAPER
from deephash_pipeline.pipelines.reporting.nodes import (
    ImageSets,
    MeasuredCells,
    ReportContent,
    draw_gallery,
    draw_map_by_code_length,
    draw_precision_recall,
    tabulate_metrics,
    write_report,
)
from deephash_pipeline.pipelines.shared.bundles import Bundle, node
from deephash_pipeline.pipelines.shared.inputs import QUERIES, TRAINING_SET_FILES, VALIDATION_SET

REPORT_TABLES = ("map_table", "metrics_table", "comparison_table", "protocols_table")
SHOWN_TABLES = ("map_table", "comparison_table", "protocols_table")
FIGURES = ("figure_map_by_code_length", "figure_precision_recall")

IMAGE_SETS = Bundle(ImageSets, (QUERIES, TRAINING_SET_FILES, VALIDATION_SET))


def create_pipeline(prefix: str = "", names: str = NAMES_OF_PAPER) -> Pipeline:
    """Metrics, curves, images and codes -> tables, figures, gallery -> report.

    Read besides, as far as they were run: unseen_cells, the metrics of the same benchmark with unseen classes; and
    references, those of real-valued z and of product quantisation.

    Args:
        prefix: stands before the names of what is read and made of a whole grid, such as ``field.``; the gallery, of
            one cell, is the same for all.
        names: parameter with the methods' names.
    """
    shown = GALLERY.namespace
    metrics, curves = f"{prefix}all_metrics", f"{prefix}precision_recall_curves"
    of_codes, of_recall = (f"{prefix}{figure}" for figure in FIGURES)
    tables = (f"{prefix}{table}" for table in SHOWN_TABLES)
    content = Bundle(ReportContent, (*tables, of_codes, of_recall, "gallery"))
    measured = Bundle(MeasuredCells, (metrics, f"{metrics}_origin", names))
    return Pipeline(
        [
            node(
                tabulate_metrics,
                [metrics, "unseen_cells", "references", "params:experiment", names],
                [f"{prefix}{table}" for table in REPORT_TABLES],
            ),
            node(draw_map_by_code_length, [metrics, names], of_codes),
            node(draw_precision_recall, [curves, names], of_recall),
            node(draw_gallery, [IMAGE_SETS, f"{shown}.codes", "params:protocol", "params:experiment.seed"], "gallery"),
            node(
                write_report,
                [content, measured, f"params:cells.{shown}", "params:reporting", "params:experiment"],
                f"{prefix}report",
            ),
        ]
    )
