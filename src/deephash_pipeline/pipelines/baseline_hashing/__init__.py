"""Stage `baseline_hashing`: see its README."""

from deephash_pipeline.pipelines.baseline_hashing.pipeline import create_pipeline

__all__ = ["create_pipeline"]
