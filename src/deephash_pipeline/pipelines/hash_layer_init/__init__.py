"""Stage `hash_layer_init`: see its README."""

from .pipeline import create_pipeline

__all__ = ["create_pipeline"]
