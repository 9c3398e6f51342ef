"""Pipeline `held_out_evaluation`: see its README."""

from deephash_pipeline.pipelines.held_out_evaluation.pipeline import create_pipeline

__all__ = ["create_pipeline"]
