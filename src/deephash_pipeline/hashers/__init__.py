"""Interface of image hashers: a description, and images in, packed codes out. No PyTorch.

`deephash_pipeline.deephash.ImageHasher` is computed by PyTorch, `OnnxHasher` by ONNX Runtime.
"""

from deephash_pipeline.hashers.base import BaseHasher, EncodedImages, HasherDescription
from deephash_pipeline.hashers.onnx_hasher import OnnxHasher

__all__ = ["BaseHasher", "EncodedImages", "HasherDescription", "OnnxHasher"]
