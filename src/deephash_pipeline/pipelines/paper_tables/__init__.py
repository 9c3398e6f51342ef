"""Pipeline `paper_tables`: see its README."""

from deephash_pipeline.pipelines.paper_tables.pipeline import create_pipeline

__all__ = ["create_pipeline"]
