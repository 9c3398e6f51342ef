"""Stage `feature_extraction`: see its README."""

from deephash_pipeline.pipelines.feature_extraction.pipeline import create_pipeline

__all__ = ["create_pipeline"]
