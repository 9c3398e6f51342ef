"""Stage `data_ingestion`: see its README."""

from deephash_pipeline.pipelines.data_ingestion.pipeline import create_pipeline

__all__ = ["create_pipeline"]
