"""Other people's ways from binary codes to mean average precision, each as its documentation tells to use it.

Every adapter gets a `CodeBenchmark`, brings its database into the form the rival wants, which is not timed, and returns
a function that is: from the codes of all queries to the rival's own figure, over the whole database. Where a rival
leaves a choice, such as the type of scores or the size of a batch, the quicker one was taken.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score

from benchmarks.codes import LONGEST_CODE, CodeBenchmark
from deephash_pipeline.errors import InputError
from deephash_pipeline.retrieval import DistanceHistograms, unpack_bits

BYTES_PER_WORD = 8
FAISS_QUERIES_AT_A_TIME = 5


@dataclass(frozen=True)
class Rival:
    """A rival by the name that tables show.

    Attributes:
        name: what it is.
        package: the module it needs beyond the project's dependencies, if any.
        prepare: brings a benchmark's database into its form and returns the function to be timed.
    """

    name: str
    package: str | None
    prepare: Callable[[CodeBenchmark], Callable[[], float]]


def _argsort_loop(benchmark: CodeBenchmark) -> Callable[[], float]:
    """For each query: product of signs, default argsort of the distances, precision at each hit (as DeepHash-pytorch).

    Relevance is a comparison of labels here, not a product of one-hot rows, whose cost grows with the classes.
    """
    query_signs, database_signs = _signs(benchmark)

    def run() -> float:
        figures = []
        for signs, label in zip(query_signs, benchmark.query_labels, strict=True):
            distances = 0.5 * (benchmark.code_length - database_signs @ signs)
            hits = (benchmark.database_labels == label)[np.argsort(distances)]
            figures.append(_mean_precision_at_hits(hits))
        return float(np.mean(figures))

    return run


def _torchmetrics(benchmark: CodeBenchmark) -> Callable[[], float]:
    from torchmetrics.retrieval import RetrievalMAP  # noqa: PLC0415 - not a dependency of the project

    query_signs, database_signs = map(torch.from_numpy, _signs(benchmark))
    query_labels, database_labels = _label_tensors(benchmark)

    def run() -> float:
        # Items whose score is not positive count as irrelevant, so the least score is 1.
        scores = query_signs @ database_signs.T + (benchmark.code_length + 1)
        relevant = query_labels[:, None] == database_labels
        query_of_score = torch.arange(len(query_labels)).repeat_interleave(len(database_labels))
        metric = RetrievalMAP()
        metric.update(scores.flatten(), relevant.flatten(), indexes=query_of_score)
        return float(metric.compute())

    return run


def _metric_learning(benchmark: CodeBenchmark) -> Callable[[], float]:
    """AccuracyCalculator with its default search, faiss's IndexFlatL2, for all items."""
    return _accuracy_calculator(benchmark, with_dot_products=False)


def _metric_learning_with_dot_products(benchmark: CodeBenchmark) -> Callable[[], float]:
    """AccuracyCalculator with its CustomKNN on dot products: a matrix product and `torch.topk`."""
    return _accuracy_calculator(benchmark, with_dot_products=True)


def _accuracy_calculator(benchmark: CodeBenchmark, with_dot_products: bool) -> Callable[[], float]:
    # Not dependencies of the project.
    from pytorch_metric_learning.distances import DotProductSimilarity  # noqa: PLC0415
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator  # noqa: PLC0415
    from pytorch_metric_learning.utils.inference import CustomKNN  # noqa: PLC0415

    query_signs, database_signs = map(torch.from_numpy, _signs(benchmark))
    query_labels, database_labels = _label_tensors(benchmark)
    calculator = AccuracyCalculator(
        include=("mean_average_precision",),
        k=None,
        device=torch.device("cpu"),
        knn_func=CustomKNN(DotProductSimilarity(normalize_embeddings=False)) if with_dot_products else None,
    )

    def run() -> float:
        figures = calculator.get_accuracy(query_signs, query_labels, database_signs, database_labels)
        return float(figures["mean_average_precision"])

    return run


def _scikit_learn(benchmark: CodeBenchmark) -> Callable[[], float]:
    """`average_precision_score` of each query; distances from exclusive or and bit counts."""
    query_words, database_words = _words(benchmark.query_codes), _words(benchmark.database_codes)

    def run() -> float:
        figures = [
            average_precision_score(
                benchmark.database_labels == label, -np.bitwise_count(database_words ^ word).astype(np.int64)
            )
            for word, label in zip(query_words, benchmark.query_labels, strict=True)
        ]
        return float(np.mean(figures))

    return run


def _faiss_with_heap(benchmark: CodeBenchmark) -> Callable[[], float]:
    """IndexBinaryFlat as it comes, searched for all items."""
    return _faiss(benchmark, use_heap=True)


def _faiss_by_counting(benchmark: CodeBenchmark) -> Callable[[], float]:
    """IndexBinaryFlat with `use_heap = False`: it sorts by counting distances."""
    return _faiss(benchmark, use_heap=False)


def _faiss(benchmark: CodeBenchmark, use_heap: bool) -> Callable[[], float]:
    from faiss import IndexBinaryFlat  # noqa: PLC0415 - not a dependency of the project

    index = IndexBinaryFlat(8 * benchmark.database_codes.shape[1])
    index.add(benchmark.database_codes)
    index.use_heap = use_heap
    items = len(benchmark.database_codes)

    def run() -> float:
        figures = []
        for start in range(0, len(benchmark.query_codes), FAISS_QUERIES_AT_A_TIME):
            block = slice(start, start + FAISS_QUERIES_AT_A_TIME)
            _, rankings = index.search(benchmark.query_codes[block], items)
            for ranking, label in zip(rankings, benchmark.query_labels[block], strict=True):
                figures.append(_mean_precision_at_hits(benchmark.database_labels[ranking] == label))
        return float(np.mean(figures))

    return run


RIVALS = (
    Rival("torchmetrics", "torchmetrics", _torchmetrics),
    Rival("pytorch-metric-learning", "pytorch_metric_learning", _metric_learning),
    Rival("pytorch-metric-learning, CustomKNN", "pytorch_metric_learning", _metric_learning_with_dot_products),
    Rival("scikit-learn", None, _scikit_learn),
    Rival("faiss", "faiss", _faiss_with_heap),
    Rival("faiss, use_heap=False", "faiss", _faiss_by_counting),
    Rival("argsort loop", None, _argsort_loop),
)


def count_without_compiler(benchmark: CodeBenchmark) -> DistanceHistograms:
    """Exact histograms from numpy and PyTorch alone: exclusive or, bit counts, `torch.bincount` of the row of bytes.

    Items in order of their class, and words no longer than the code needs. Codes of up to 64 bits.
    """
    by_class = np.argsort(benchmark.database_labels, kind="stable")
    in_order = benchmark.database_labels[by_class]
    words = _words(benchmark.database_codes[by_class])
    starts = np.searchsorted(in_order, benchmark.query_labels, side="left")
    stops = np.searchsorted(in_order, benchmark.query_labels, side="right")
    different_bits = np.empty_like(words)
    distances = np.empty(len(words), dtype=np.uint8)
    distance_tensor = torch.from_numpy(distances)
    bins = benchmark.code_length + 1
    counts = np.empty((2, len(starts), bins), dtype=np.int64)
    for query, word in enumerate(_words(benchmark.query_codes)):
        np.bitwise_xor(words, word, out=different_bits)
        np.bitwise_count(different_bits, out=distances)
        counts[0, query] = torch.bincount(distance_tensor, minlength=bins).numpy()
        of_class = distance_tensor[starts[query] : stops[query]]
        counts[1, query] = torch.bincount(of_class, minlength=bins).numpy()
    return DistanceHistograms(all=counts[0], relevant=counts[1])


def _mean_precision_at_hits(hits: NDArray[np.bool_]) -> float:
    """Average precision of one ranking, given which of its items are relevant."""
    ranks = np.flatnonzero(hits) + 1
    return float(np.mean(np.arange(1, len(ranks) + 1) / ranks)) if len(ranks) else 0.0


def _signs(benchmark: CodeBenchmark) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Codes of queries and database as -1 and +1, float32 (n, code_length)."""
    query_bits = unpack_bits(benchmark.query_codes, benchmark.code_length)
    database_bits = unpack_bits(benchmark.database_codes, benchmark.code_length)
    return np.where(query_bits, 1, -1).astype(np.float32), np.where(database_bits, 1, -1).astype(np.float32)


def _label_tensors(benchmark: CodeBenchmark) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(benchmark.query_labels), torch.from_numpy(benchmark.database_labels)


def _words(codes: NDArray[np.uint8]) -> NDArray[np.unsignedinteger]:
    """Packed codes as the shortest words that hold one each, (n,)."""
    bytes_per_code = codes.shape[1]
    if bytes_per_code > BYTES_PER_WORD:
        raise InputError(f"codes has {bytes_per_code} bytes per code; benchmarks take up to {LONGEST_CODE} bits.")
    width = next(width for width in (1, 2, 4, 8) if width >= bytes_per_code)
    padded = np.zeros((len(codes), width), dtype=np.uint8)
    padded[:, :bytes_per_code] = codes
    return padded.view(f"u{width}")[:, 0]
