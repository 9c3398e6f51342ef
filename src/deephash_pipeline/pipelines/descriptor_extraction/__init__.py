"""Stage `descriptor_extraction`: see its README."""

from deephash_pipeline.pipelines.descriptor_extraction.pipeline import create_pipeline

__all__ = ["create_pipeline"]
