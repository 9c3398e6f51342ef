"""Stage `cnn_pretraining`: see its README."""

from deephash_pipeline.pipelines.cnn_pretraining.pipeline import create_pipeline

__all__ = ["create_pipeline"]
