"""Pipeline `tuning`: see its README."""

from deephash_pipeline.pipelines.tuning.pipeline import create_pipeline

__all__ = ["create_pipeline"]
