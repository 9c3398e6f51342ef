"""Pipeline `tuning_results`: see its README."""

from deephash_pipeline.pipelines.tuning_results.pipeline import create_pipeline

__all__ = ["create_pipeline"]
