"""Reports: from metrics, curves and images to tables, Plotly figures, a gallery and one HTML page."""

from deephash_pipeline.reports.figures import figure_map_by_code_length, figure_precision_recall
from deephash_pipeline.reports.gallery import retrieval_gallery
from deephash_pipeline.reports.page import render_report
from deephash_pipeline.reports.published import published_map
from deephash_pipeline.reports.tables import comparison_table, map_table, metrics_table
from deephash_pipeline.reports.training_curves import figure_training_curves

__all__ = [
    "comparison_table",
    "figure_map_by_code_length",
    "figure_precision_recall",
    "figure_training_curves",
    "map_table",
    "metrics_table",
    "published_map",
    "render_report",
    "retrieval_gallery",
]
