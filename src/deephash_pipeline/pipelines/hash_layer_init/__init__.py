"""Stage `hash_layer_init`: see its README."""

from deephash_pipeline.pipelines.hash_layer_init.pipeline import create_pipeline

__all__ = ["create_pipeline"]
