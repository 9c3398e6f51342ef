"""Stage `hand_crafted`: see its README."""

from deephash_pipeline.pipelines.hand_crafted.pipeline import create_pipeline

__all__ = ["create_pipeline"]
