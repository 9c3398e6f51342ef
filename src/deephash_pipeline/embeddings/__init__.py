"""Vectors that are found by their codes: a hash function, its codes, and the vectors in few bytes, in one folder.

It knows `hashing` and `hamming`, and nothing of images, networks or command lines. A file of vectors is opened, or
refused, before scikit-learn, which hash functions need, is imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deephash_pipeline.embeddings.answers import CosineAnswers, VectorItem
    from deephash_pipeline.embeddings.index import VectorIndex
    from deephash_pipeline.embeddings.shards import ShardedVectors, open_vectors
    from deephash_pipeline.embeddings.sources import ArrayVectors, ParquetVectors, VectorSource

__all__ = [
    "ArrayVectors",
    "CosineAnswers",
    "ParquetVectors",
    "ShardedVectors",
    "VectorIndex",
    "VectorItem",
    "VectorSource",
    "open_vectors",
]

PLACES = {
    "CosineAnswers": "answers",
    "VectorItem": "answers",
    "VectorIndex": "index",
    "ShardedVectors": "shards",
    "open_vectors": "shards",
    "ArrayVectors": "sources",
    "ParquetVectors": "sources",
    "VectorSource": "sources",
}
"""Name -> module that it is imported from when it is asked for."""


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{PLACES[name]}"), name)
