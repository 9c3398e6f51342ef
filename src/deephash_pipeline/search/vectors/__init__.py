"""Vectors that are found by their codes: a hash function, its codes, and the vectors in few bytes, in one folder.

It knows `hashing` and `search`, and nothing of images, networks or command lines.
"""

from deephash_pipeline.search.vectors.index import VectorIndex
from deephash_pipeline.search.vectors.sources import ArrayVectors, ParquetVectors, VectorSource, open_vectors

__all__ = ["ArrayVectors", "ParquetVectors", "VectorIndex", "VectorSource", "open_vectors"]
