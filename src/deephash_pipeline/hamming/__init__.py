"""Exact search in binary codes: an index, in memory or in a folder, that changes while it is searched.

It knows numpy, numba and SQLite, and nothing of images, networks or pipelines.
"""

from deephash_pipeline.hamming.answers import Answers, Item, ItemId, RangeAnswers
from deephash_pipeline.hamming.index import HammingIndex
from deephash_pipeline.hamming.pairs import NearPairs
from deephash_pipeline.hamming.reranking import ByCosine, ByFeatures, ByOutputs
from deephash_pipeline.hamming.searchable import Searchable

__all__ = [
    "Answers",
    "ByCosine",
    "ByFeatures",
    "ByOutputs",
    "HammingIndex",
    "Item",
    "ItemId",
    "NearPairs",
    "RangeAnswers",
    "Searchable",
]
