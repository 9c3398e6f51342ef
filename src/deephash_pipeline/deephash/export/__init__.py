"""Hashers in the forms of other programs: ONNX, and folders in the layout of the Hugging Face Hub."""

from deephash_pipeline.deephash.export.huggingface import export_huggingface
from deephash_pipeline.deephash.export.onnx import export_onnx

__all__ = ["export_huggingface", "export_onnx"]
