"""Pipeline `paper_tables`: see its README."""

from .pipeline import create_pipeline

__all__ = ["create_pipeline"]
