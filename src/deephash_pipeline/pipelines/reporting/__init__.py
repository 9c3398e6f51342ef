"""Stage `reporting`: see its README."""

from deephash_pipeline.pipelines.reporting.pipeline import create_pipeline

__all__ = ["create_pipeline"]
