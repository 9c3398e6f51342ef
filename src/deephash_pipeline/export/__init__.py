"""Hashers in the forms of other programs: ONNX."""

from deephash_pipeline.export.onnx import export_onnx

__all__ = ["export_onnx"]
