"""Stage `reporting`: see its README."""

from deephash_pipeline.pipelines.reporting.pipeline import FIGURES, TABLES, create_pipeline

__all__ = ["FIGURES", "TABLES", "create_pipeline"]
