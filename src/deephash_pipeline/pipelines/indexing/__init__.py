"""Pipeline `indexing`: see its README."""

from deephash_pipeline.pipelines.indexing.pipeline import create_pipeline

__all__ = ["create_pipeline"]
