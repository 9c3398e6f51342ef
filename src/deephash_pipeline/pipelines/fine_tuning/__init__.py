"""Stage `fine_tuning`: see its README."""

from deephash_pipeline.pipelines.fine_tuning.pipeline import create_pipeline

__all__ = ["create_pipeline"]
