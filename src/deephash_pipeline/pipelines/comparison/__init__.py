"""Pipeline `comparison`: see its README."""

from deephash_pipeline.pipelines.comparison.pipeline import create_pipeline

__all__ = ["create_pipeline"]
