"""Average precision in stable order: by distance, and among equally far items by index in the database.

Published code sorts, and what it reports is the value for one order among equally far items. This is that value for
a stable sort, to compare with; `average_precision` gives the mean over all orders. A database stored class by class
favours some classes here, and another order of the same database gives another value.
"""

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval.code_files import LabelledCodes
from deephash_pipeline.retrieval.codes import check_codes, code_words
from deephash_pipeline.retrieval.groups import check_rank
from deephash_pipeline.retrieval.kernels.compiled import in_threads
from deephash_pipeline.retrieval.labels import check_label_pair


def stable_order_average_precision(codes: LabelledCodes, k: int | None = None) -> NDArray[np.float64]:
    """Average precision of every query with the database ranked by distance, then by index in the database.

    AP = 1/R sum_i i / p_i over the relevant items, where p_i is the place of the i-th of them; R items are relevant.
    With `k`, only places 1..k count, and the sum is divided by min(R, k) instead, as in `average_precision_at`.
    Which items are relevant is as in `count_distances`. Memory grows with queries + items, never with their product.
    The number of threads (`numba.set_num_threads`) changes nothing.

    Args:
        codes: of queries and database, of 1..4096 bits, with their labels.
        k: how many places count; a k beyond the database, or None, means all of it.

    Returns:
        float64 (queries,) in 0..1; nan for a query without relevant items.

    Raises:
        InputError: if an argument has another type or shape, there is no query or no item, or k is no whole number of
            at least 1.

    Example:
        >>> same_code = np.zeros((3, 1), dtype=np.uint8)
        >>> codes = LabelledCodes(same_code[:1], np.array([7]), same_code, np.array([4, 7, 4]), code_length=8)
        >>> stable_order_average_precision(codes)
        array([0.5])
    """
    query_codes, query_labels, database_codes, database_labels, code_length = codes
    query_words = code_words(check_codes(query_codes, code_length, "query_codes"))
    database_words = code_words(check_codes(database_codes, code_length, "database_codes"))
    query_labels, database_labels = check_label_pair(
        query_labels, len(query_words), database_labels, len(database_words)
    )
    several = query_labels.ndim == 2
    if several:
        query_labels, database_labels = (
            code_words(np.packbits(labels, axis=1)) for labels in (query_labels, database_labels)
        )
    counted = len(database_words) if k is None else min(check_rank(k), len(database_words))
    average_precision = np.full(len(query_words), np.nan)

    def rank_for_queries(start: int, stop: int) -> None:
        for query in range(start, stop):
            label = query_labels[query]
            relevant = np.any(database_labels & label, axis=1) if several else database_labels == label
            if not relevant.any():
                continue
            distances = np.bitwise_count(database_words ^ query_words[query]).sum(axis=1, dtype=np.uint16)
            order = np.argsort(distances, kind="stable")
            hits = np.flatnonzero(relevant[order])
            precisions = np.zeros(len(database_words))
            precisions[order[hits]] = np.where(hits < counted, np.arange(1, len(hits) + 1) / (hits + 1), 0.0)
            # One after the other, in the order of the database: the same to the last bit everywhere.
            average_precision[query] = np.cumsum(precisions)[-1] / min(len(hits), counted)

    in_threads(rank_for_queries, len(query_words))
    return average_precision
