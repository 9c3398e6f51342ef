"""Stage `evaluation`: see its README."""

from deephash_pipeline.pipelines.evaluation.pipeline import create_pipeline

__all__ = ["create_pipeline"]
