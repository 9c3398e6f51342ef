"""Pipeline `held_out_evaluation`: see its README."""

from .pipeline import create_pipeline

__all__ = ["create_pipeline"]
