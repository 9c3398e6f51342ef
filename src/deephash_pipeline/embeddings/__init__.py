"""Vectors that are found by their codes: a hash function, its codes, and the vectors in few bytes, in one folder.

It knows `hashing` and `hamming`, and nothing of images, networks or command lines.
"""

from deephash_pipeline.embeddings.index import VectorIndex
from deephash_pipeline.embeddings.shards import ShardedVectors, open_vectors
from deephash_pipeline.embeddings.sources import ArrayVectors, ParquetVectors, VectorSource

__all__ = ["ArrayVectors", "ParquetVectors", "ShardedVectors", "VectorIndex", "VectorSource", "open_vectors"]
