"""Pipeline `references`: see its README."""

from deephash_pipeline.pipelines.references.pipeline import create_pipeline

__all__ = ["create_pipeline"]
