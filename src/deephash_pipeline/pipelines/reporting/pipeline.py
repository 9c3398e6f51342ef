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
from deephash_pipeline.pipelines.shared.inputs import QUERIES, TRAINING_SET, VALIDATION_SET

TABLES = ["map_table", "metrics_table", "comparison_table", "protocols_table"]
FIGURES = ["figure_map_by_code_length", "figure_precision_recall"]

CONTENT = Bundle(ReportContent, ("map_table", "comparison_table", "protocols_table", *FIGURES, "gallery"))
SETS = Bundle(ImageSets, (QUERIES, TRAINING_SET, VALIDATION_SET))
MEASURED = Bundle(MeasuredCells, ("all_metrics", "all_metrics_origin", NAMES_OF_PAPER))


def create_pipeline() -> Pipeline:
    """Metrics, curves, images and codes -> tables, figures, gallery -> report.

    Read besides, as far as they were run: unseen_cells, the metrics of the same benchmark with unseen classes; and
    references, those of real-valued z and of product quantisation.
    """
    shown = GALLERY.namespace
    return Pipeline(
        [
            node(
                tabulate_metrics,
                ["all_metrics", "unseen_cells", "references", "params:experiment", NAMES_OF_PAPER],
                TABLES,
            ),
            node(draw_map_by_code_length, ["all_metrics", NAMES_OF_PAPER], "figure_map_by_code_length"),
            node(draw_precision_recall, ["precision_recall_curves", NAMES_OF_PAPER], "figure_precision_recall"),
            node(draw_gallery, [SETS, f"{shown}.codes", "params:protocol", "params:experiment.seed"], "gallery"),
            node(
                write_report,
                [CONTENT, MEASURED, f"params:cells.{shown}", "params:reporting", "params:experiment"],
                "report",
            ),
        ]
    )
