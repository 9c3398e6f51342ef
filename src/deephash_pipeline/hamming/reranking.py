"""Re-ranking: bits find a shortlist, real numbers bring it into order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming.features import checked_numbers
from deephash_pipeline.hamming.kernels.features import squared_distances_of_float16
from deephash_pipeline.hamming.kernels.int8_features import squared_distances_of_int8
from deephash_pipeline.hamming.kernels.outputs import disagreements
from deephash_pipeline.hamming.snapshots import Snapshot
from deephash_pipeline.retrieval.kernels.compiled import in_threads

SHORTLIST = 1000


@dataclass(frozen=True, eq=False)
class ByFeatures:
    """Order the shortlist by squared Euclidean distance between the features of query and item.

    Ten items of a class may share one code; their features tell which of them are the most alike.

    Attributes:
        z: features of the queries, float (queries, width of the index's features).
        shortlist: number of the nearest codes that are brought into order.

    Example:
        >>> from deephash_pipeline.hamming import ByFeatures, HammingIndex
        >>> index, code = HammingIndex(8, features=2), np.array([[240]], dtype=np.uint8)
        >>> index.add([1, 2], code.repeat(2, axis=0), features=np.array([[0.0, 1.0], [1.0, 0.0]]))
        >>> index.search(code, k=2, rerank=ByFeatures(np.array([[1.0, 0.0]]))).ids
        array([[2, 1]])
    """

    z: NDArray[Any]
    shortlist: int = SHORTLIST


@dataclass(frozen=True, eq=False)
class ByOutputs:
    """Order the shortlist by the real-valued outputs of the query: asymmetric distance.

    A bit costs what the query's output `u` would have to change to give it: ``sum(|u_k| where the bits differ)``
    (Gordo et al., "Asymmetric distances for binary embeddings", PAMI 2014). Only codes are stored.

    Attributes:
        u: outputs of the hash function whose signs are the queries' bits, float (queries, code_length).
        shortlist: number of the nearest codes that are brought into order.

    Example:
        >>> from deephash_pipeline.hamming import ByOutputs, HammingIndex
        >>> index = HammingIndex(2)
        >>> index.add([1, 2], np.array([[0b01000000], [0b10000000]], dtype=np.uint8))
        >>> query, u = np.array([[0b11000000]], dtype=np.uint8), np.array([[0.9, 0.1]])
        >>> answers = index.search(query, k=2, rerank=ByOutputs(u))
        >>> answers.ids, answers.scores.round(1)
        (array([[2, 1]]), array([[0.1, 0.9]], dtype=float32))
    """

    u: NDArray[Any]
    shortlist: int = SHORTLIST


@dataclass(frozen=True, eq=False)
class ByCosine:
    """Order the shortlist by the cosine between what a function makes of the features of query and item.

    Attributes:
        z: what it makes of those of the queries, float (queries, m).
        function: function of the features of items, float32 (items, width of the index's features), to numbers
            (items, m).
        shortlist: number of the nearest codes that are brought into order.

    Example:
        >>> from deephash_pipeline.hamming import ByCosine, HammingIndex
        >>> index, code = HammingIndex(8, features=2), np.array([[240]], dtype=np.uint8)
        >>> index.add([1, 2], code.repeat(2, axis=0), features=np.array([[9.0, 1.0], [9.0, 9.0]]))
        >>> index.search(code, k=2, rerank=ByCosine(np.array([[-1.0, 4.0]]), lambda features: features - [9, 5])).ids
        array([[2, 1]])
    """

    z: NDArray[Any]
    function: Callable[[NDArray[np.float32]], NDArray[Any]]
    shortlist: int = SHORTLIST


Reranking = ByFeatures | ByOutputs | ByCosine


def scores_of(
    snapshot: Snapshot, rows: NDArray[np.int64], rerank: Reranking, code_length: int, width: int
) -> NDArray[np.float32]:
    """What a re-ranking orders by, float32 (queries, shortlist), smaller is nearer.

    Args:
        snapshot: the index.
        rows: shortlist of every query, int64 (queries, shortlist).
        rerank: order that it is brought into.
        code_length: bits per code.
        width: numbers in the features of an item.

    Raises:
        InputError: if the numbers of the queries have another shape, or the index has no features.
    """
    queries = len(rows)
    scores = np.empty(rows.shape, dtype=np.float32)
    if isinstance(rerank, ByFeatures | ByCosine) and not width:
        raise InputError("this index has no features to re-rank by; create it with features, or use ByOutputs.")
    if isinstance(rerank, ByCosine):
        for query, numbers in enumerate(rerank.z):
            scores[query] = cosine_distances(numbers, rerank.function(snapshot.features_of(rows[query])))
        return scores
    if isinstance(rerank, ByFeatures):
        z = snapshot.form.rotated(checked_numbers(rerank.z, queries, width, "z"))
        if rows.size:
            _write_distances(z, rows, snapshot, scores)
        return scores
    u = checked_numbers(rerank.u, queries, code_length, "u")
    for query in range(queries):
        scores[query] = output_distances(u[query], snapshot.words_of(rows[query]))
    return scores


def _write_distances(
    z: NDArray[np.float32], rows: NDArray[np.int64], snapshot: Snapshot, scores: NDArray[np.float32]
) -> None:
    """Squared distances between queries (queries, width) and the features of their rows, on all threads."""

    def work(first: int, stop: int) -> None:
        for segment in snapshot.segments:
            features, first_row = segment.features, segment.codes.first_row
            if len(features) and features.dtype == np.int8:
                squared_distances_of_int8(first, stop, z, rows, first_row, features, scores)
            elif len(features):
                # numba knows no float16.
                squared_distances_of_float16(first, stop, z, rows, first_row, features.view(np.uint16), scores)

    if len(rows) == 1:
        work(0, 1)
    else:
        in_threads(work, len(rows))


def cosine_distances(query: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float32]:
    """1 - cosine of numbers (m,) with each of rows (n, m), float32 (n,); 1 where either is 0.

    Example:
        >>> cosine_distances(np.array([2.0, 0.0]), np.array([[1.0, 0.0], [0.0, 3.0], [0.0, 0.0]]))
        array([0., 1., 1.], dtype=float32)
    """
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
    return np.asarray(1 - rows @ query / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def output_distances(u: NDArray[np.float32], words: NDArray[np.uint64]) -> NDArray[np.float32]:
    """Asymmetric distances, float32 (items,), between one query (code_length,) and codes (items, words).

    Example:
        >>> words = np.packbits(np.array([[1, 0]], dtype=bool), axis=1, bitorder="big").astype(np.uint64)
        >>> output_distances(np.array([0.5, 2.0], dtype=np.float32), words)
        array([2.], dtype=float32)
    """
    distances = np.empty(len(words), dtype=np.float32)
    disagreements(u, np.ascontiguousarray(words).view(np.uint8), distances)
    return distances
