"""Stage 8: show what came out."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.grid import FINE_TUNINGS, GALLERY, PRE_TRAINING, RANDOM_INITIALISATION, cells

from .nodes import (
    draw_gallery,
    draw_map_by_code_length,
    draw_precision_recall,
    draw_training_curves,
    join_curves,
    tabulate_metrics,
    write_report,
)

TABLES = ["map_table", "metrics_table", "comparison_table"]
FIGURES = ["figure_map_by_code_length", "figure_precision_recall", "figure_training_curves"]


def create_pipeline() -> Pipeline:
    """<cell>.{metrics, curves, history}, images, codes -> tables, figures, gallery -> report."""
    metrics = [f"{cell.namespace}.metrics" for cell in cells()]
    curves = [f"{cell.namespace}.curves" for cell in cells()]
    histories = [f"{cell.namespace}.history" for cell in cells(PRE_TRAINING, RANDOM_INITIALISATION, *FINE_TUNINGS)]
    shown = GALLERY.namespace
    return Pipeline(
        [
            Node(tabulate_metrics, inputs=["params:experiment", *metrics], outputs=TABLES, name="tabulate_metrics"),
            Node(join_curves, inputs=curves, outputs="precision_recall_curves", name="join_curves"),
            Node(
                draw_map_by_code_length,
                inputs=metrics,
                outputs="figure_map_by_code_length",
                name="draw_map_by_code_length",
            ),
            Node(
                draw_precision_recall,
                inputs=["precision_recall_curves", "params:reporting"],
                outputs="figure_precision_recall",
                name="draw_precision_recall",
            ),
            Node(
                draw_training_curves,
                inputs=["pre_training_history", *histories],
                outputs="figure_training_curves",
                name="draw_training_curves",
            ),
            Node(
                draw_gallery,
                inputs=[
                    "query_images",
                    "query_labels",
                    "training_images",
                    "training_labels",
                    f"{shown}.query_codes",
                    f"{shown}.database_codes",
                    "class_names",
                    f"{shown}.encoder",
                    "params:reporting",
                    "params:experiment",
                ],
                outputs="gallery",
                name="draw_gallery",
            ),
            Node(
                write_report,
                inputs=[
                    "map_table",
                    "comparison_table",
                    *FIGURES,
                    "gallery",
                    f"{shown}.metrics",
                    f"params:cells.{shown}",
                    "params:reporting",
                    "params:experiment",
                ],
                outputs="report",
                name="write_report",
            ),
        ]
    )
