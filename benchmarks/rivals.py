"""Other people's ways from binary codes to mean average precision, each used as its documentation says.

Every adapter brings the database into the form the rival wants, which is not timed, and returns a function that is:
from the codes of all queries to the rival's own metric. Where a rival leaves a choice, the quicker one was taken.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval import DistanceHistograms, LabelledCodes, unpack_bits

FAISS_QUERIES_AT_A_TIME = 5


class Rival(NamedTuple):
    """A rival by the name that tables show, and the module it needs beyond the project's dependencies, if any."""

    name: str
    package: str | None
    prepare: Callable[[LabelledCodes], Callable[[], float]]


def _argsort_loop(codes: LabelledCodes) -> Callable[[], float]:
    """As DeepHash-pytorch, but that relevance is a comparison of labels, not a product of one-hot rows."""
    query_signs, database_signs = _signs(codes)

    def ranking(signs: NDArray[np.float32]) -> NDArray[np.int64]:
        return np.argsort(0.5 * (codes.code_length - database_signs @ signs))

    return lambda: _mean_average_precision(codes, map(ranking, query_signs))


def _torchmetrics(codes: LabelledCodes) -> Callable[[], float]:
    from torchmetrics.retrieval import RetrievalMAP  # noqa: PLC0415 - not a dependency of the project

    query_signs, query_labels, database_signs, database_labels = _tensors(codes)

    def run() -> float:
        # Items whose score is not positive count as irrelevant, so the least score is 1.
        scores = query_signs @ database_signs.T + (codes.code_length + 1)
        relevant = query_labels[:, None] == database_labels
        query_of_score = torch.arange(len(query_labels)).repeat_interleave(len(database_labels))
        metric = RetrievalMAP()
        metric.update(scores.flatten(), relevant.flatten(), indexes=query_of_score)
        return float(metric.compute())

    return run


def _accuracy_calculator(codes: LabelledCodes, with_dot_products: bool) -> Callable[[], float]:
    """AccuracyCalculator for all items, with its default search (faiss's IndexFlatL2) or its CustomKNN."""
    # Not dependencies of the project.
    from pytorch_metric_learning.distances import DotProductSimilarity  # noqa: PLC0415
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator  # noqa: PLC0415
    from pytorch_metric_learning.utils.inference import CustomKNN  # noqa: PLC0415

    tensors, name = _tensors(codes), "mean_average_precision"
    search = CustomKNN(DotProductSimilarity(normalize_embeddings=False)) if with_dot_products else None
    calculator = AccuracyCalculator(include=(name,), k=None, device=torch.device("cpu"), knn_func=search)
    return lambda: float(calculator.get_accuracy(*tensors)[name])


def _scikit_learn(codes: LabelledCodes) -> Callable[[], float]:
    """`average_precision_score` of each query; distances from exclusive or and bit counts."""
    query_words, database_words = _words(codes.query_codes), _words(codes.database_codes)

    def average_precision(word: Any, label: np.int64) -> float:
        distances = np.bitwise_count(database_words ^ word).astype(np.int64)
        return float(average_precision_score(codes.database_labels == label, -distances))

    return lambda: float(np.mean(list(map(average_precision, query_words, codes.query_labels))))


def _faiss(codes: LabelledCodes, use_heap: bool) -> Callable[[], float]:
    """IndexBinaryFlat searched for all items: as it comes, or sorting by counting distances."""
    from faiss import IndexBinaryFlat  # noqa: PLC0415 - not a dependency of the project

    index = IndexBinaryFlat(8 * codes.database_codes.shape[1])
    index.add(codes.database_codes)
    index.use_heap = use_heap
    items = len(codes.database_codes)

    def rankings() -> Iterator[NDArray[np.int64]]:
        for start in range(0, len(codes.query_codes), FAISS_QUERIES_AT_A_TIME):
            yield from index.search(codes.query_codes[start : start + FAISS_QUERIES_AT_A_TIME], items)[1]

    return lambda: _mean_average_precision(codes, rankings())


METRIC_LEARNING = "pytorch_metric_learning"
RIVALS = (
    Rival("torchmetrics", "torchmetrics", _torchmetrics),
    Rival("pytorch-metric-learning", METRIC_LEARNING, partial(_accuracy_calculator, with_dot_products=False)),
    Rival("pytorch-metric-learning, CustomKNN", METRIC_LEARNING, partial(_accuracy_calculator, with_dot_products=True)),
    Rival("scikit-learn", None, _scikit_learn),
    Rival("faiss", "faiss", partial(_faiss, use_heap=True)),
    Rival("faiss, use_heap=False", "faiss", partial(_faiss, use_heap=False)),
    Rival("argsort loop", None, _argsort_loop),
)


def count_without_compiler(codes: LabelledCodes) -> DistanceHistograms:
    """Exact histograms from numpy and PyTorch alone: exclusive or, bit counts, `torch.bincount`; items by class."""
    by_class = np.argsort(codes.database_labels, kind="stable")
    in_order = codes.database_labels[by_class]
    words = _words(codes.database_codes[by_class])
    starts = np.searchsorted(in_order, codes.query_labels, side="left")
    stops = np.searchsorted(in_order, codes.query_labels, side="right")
    different_bits, distances = np.empty_like(words), np.empty(len(words), dtype=np.uint8)
    distance_tensor, bins = torch.from_numpy(distances), codes.code_length + 1
    counts = np.empty((2, len(starts), bins), dtype=np.int64)
    for query, word in enumerate(_words(codes.query_codes)):
        np.bitwise_xor(words, word, out=different_bits)
        np.bitwise_count(different_bits, out=distances)
        counts[0, query] = torch.bincount(distance_tensor, minlength=bins).numpy()
        of_class = distance_tensor[starts[query] : stops[query]]
        counts[1, query] = torch.bincount(of_class, minlength=bins).numpy()
    return DistanceHistograms(all=counts[0], relevant=counts[1])


def _mean_average_precision(codes: LabelledCodes, rankings: Iterable[NDArray[np.int64]]) -> float:
    """Mean over the queries of the precision at each hit of their rankings."""
    precisions = []
    for ranking, label in zip(rankings, codes.query_labels, strict=True):
        ranks = np.flatnonzero(codes.database_labels[ranking] == label) + 1
        precisions.append(np.mean(np.arange(1, len(ranks) + 1) / ranks) if len(ranks) else 0.0)
    return float(np.mean(precisions))


def _signs(codes: LabelledCodes) -> list[NDArray[np.float32]]:
    """Codes of queries and database as -1 and +1, float32 (n, code_length)."""
    packed = (codes.query_codes, codes.database_codes)
    return [np.where(unpack_bits(rows, codes.code_length), 1, -1).astype(np.float32) for rows in packed]


def _tensors(codes: LabelledCodes) -> list[torch.Tensor]:
    """Signs and labels of the queries, then of the database."""
    query_signs, database_signs = _signs(codes)
    arrays = (query_signs, codes.query_labels, database_signs, codes.database_labels)
    return [torch.from_numpy(array) for array in arrays]


def _words(codes: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
    """Packed codes as the shortest words that one fits into, (n,)."""
    width = next((width for width in (1, 2, 4, 8) if width >= codes.shape[1]), None)
    if width is None:
        raise InputError(f"codes has {codes.shape[1]} bytes per code; benchmarks take up to 64 bits.")
    return np.pad(codes, ((0, 0), (0, width - codes.shape[1]))).view(f"u{width}")[:, 0]
