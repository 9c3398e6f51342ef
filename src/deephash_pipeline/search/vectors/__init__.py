"""Vectors that are found by their codes: a hash function, its codes, and the vectors in few bytes, in one folder.

It knows `hashing` and `search`, and nothing of images, networks or command lines.
"""

from deephash_pipeline.search.vectors.index import VectorIndex
from deephash_pipeline.search.vectors.shards import ShardedVectors, open_vectors
from deephash_pipeline.search.vectors.sources import ArrayVectors, ParquetVectors, VectorSource

__all__ = ["ArrayVectors", "ParquetVectors", "ShardedVectors", "VectorIndex", "VectorSource", "open_vectors"]
