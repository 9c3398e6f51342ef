"""Evaluation of binary codes by Hamming distance, for codes of any origin.

Counting comes first and is dear, the metrics follow from the counts and are cheap:

>>> import numpy as np
>>> from deephash_pipeline.retrieval import count_distances, pack_bits, retrieval_metrics
>>> database_bits = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1], [0, 1, 1]], dtype=bool)
>>> query_bits = np.array([[0, 0, 0]], dtype=bool)
>>> histograms = count_distances(
...     query_codes=pack_bits(query_bits),
...     query_labels=np.array([7]),
...     database_codes=pack_bits(database_bits),
...     database_labels=np.array([7, 7, 4, 7]),
...     code_length=3,
... )
>>> histograms.all.tolist(), histograms.relevant.tolist()
([[1, 1, 1, 1]], [[1, 1, 1, 0]])
>>> retrieval_metrics(histograms)["mean_average_precision"]
1.0
"""

from deephash_pipeline.retrieval.by_hits import average_precision_at_by_hits, mean_average_precision_at_by_hits
from deephash_pipeline.retrieval.code_files import LabelledCodes, labelled_codes
from deephash_pipeline.retrieval.codes import (
    MAXIMUM_CODE_LENGTH,
    CodeSets,
    bit_balance,
    check_code_length,
    check_codes,
    distinct_codes,
    pack_bits,
    unpack_bits,
)
from deephash_pipeline.retrieval.counting import (
    DistanceHistograms,
    GradedHistograms,
    count_distances,
    count_shared_labels,
)
from deephash_pipeline.retrieval.curves import (
    PrecisionRecallCurve,
    precision_recall_by_radius,
    precision_recall_by_rank,
)
from deephash_pipeline.retrieval.graded import acg_at, graded_metrics, ndcg_at, wap_at
from deephash_pipeline.retrieval.metrics import (
    average_precision,
    average_precision_at,
    average_precision_bounds,
    chance_level,
    is_near_chance,
    mean_average_precision,
    precision_at,
    precision_within_radius,
    recall_at,
    retrieval_metrics,
)
from deephash_pipeline.retrieval.real_valued import real_valued_metrics

__all__ = [
    "MAXIMUM_CODE_LENGTH",
    "CodeSets",
    "DistanceHistograms",
    "GradedHistograms",
    "LabelledCodes",
    "PrecisionRecallCurve",
    "acg_at",
    "average_precision",
    "average_precision_at",
    "average_precision_at_by_hits",
    "average_precision_bounds",
    "bit_balance",
    "chance_level",
    "check_code_length",
    "check_codes",
    "count_distances",
    "count_shared_labels",
    "distinct_codes",
    "graded_metrics",
    "is_near_chance",
    "labelled_codes",
    "mean_average_precision",
    "mean_average_precision_at_by_hits",
    "ndcg_at",
    "pack_bits",
    "precision_at",
    "precision_recall_by_radius",
    "precision_recall_by_rank",
    "precision_within_radius",
    "real_valued_metrics",
    "recall_at",
    "retrieval_metrics",
    "unpack_bits",
    "wap_at",
]
