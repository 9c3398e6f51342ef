"""Pipeline `measured_cells`: see its README."""

from deephash_pipeline.pipelines.measured_cells.pipeline import create_pipeline

__all__ = ["create_pipeline"]
