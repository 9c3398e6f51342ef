"""Reports: from metrics, curves and images to tables, Plotly figures, a gallery and one HTML page."""

from deephash_pipeline.common.extras import missing

try:
    from deephash_pipeline.reports.cells import cell_metric, cell_protocol
    from deephash_pipeline.reports.figures import figure_map_by_code_length, figure_precision_recall
    from deephash_pipeline.reports.gallery import CodedImages, GalleryParameters, retrieval_gallery
    from deephash_pipeline.reports.page import Report, render_report
    from deephash_pipeline.reports.paper.figures import (
        paper_figure_map,
        paper_figure_precision_recall,
        precision_recall_table,
    )
    from deephash_pipeline.reports.paper.pages import compared_page, precision_recall_page, unseen_page
    from deephash_pipeline.reports.paper.published import cited_map, published_hand_crafted_map, published_map
    from deephash_pipeline.reports.paper.tables import (
        HAND_CRAFTED_FEATURES,
        Results,
        all_methods_table,
        code_lengths_table,
        features_table,
        for_readers,
        unseen_table,
    )
    from deephash_pipeline.reports.protocols import ByProtocol, by_other_protocols, protocols_table
    from deephash_pipeline.reports.seeds import Scores, cell_text, figure_seeds, seeds_page, seeds_table, with_verdicts
    from deephash_pipeline.reports.stored_tables import (
        classifier_baselines_table,
        with_classifier_baselines,
        with_stored_curves,
        with_stored_metrics,
    )
    from deephash_pipeline.reports.tables import comparison_table, map_table, metrics_table
    from deephash_pipeline.reports.training_curves import figure_training_curves
except ModuleNotFoundError as error:
    raise missing(error, "pipeline") from error

__all__ = [
    "HAND_CRAFTED_FEATURES",
    "ByProtocol",
    "CodedImages",
    "GalleryParameters",
    "Report",
    "Results",
    "Scores",
    "all_methods_table",
    "by_other_protocols",
    "cell_metric",
    "cell_protocol",
    "cell_text",
    "cited_map",
    "classifier_baselines_table",
    "code_lengths_table",
    "compared_page",
    "comparison_table",
    "features_table",
    "figure_map_by_code_length",
    "figure_precision_recall",
    "figure_seeds",
    "figure_training_curves",
    "for_readers",
    "map_table",
    "metrics_table",
    "paper_figure_map",
    "paper_figure_precision_recall",
    "precision_recall_page",
    "precision_recall_table",
    "protocols_table",
    "published_hand_crafted_map",
    "published_map",
    "render_report",
    "retrieval_gallery",
    "seeds_page",
    "seeds_table",
    "unseen_page",
    "unseen_table",
    "with_classifier_baselines",
    "with_stored_curves",
    "with_stored_metrics",
    "with_verdicts",
]
