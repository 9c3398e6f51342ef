"""Average precision in stable order: by distance, and among equally far items by index in the database.

Published code sorts, and what it reports is the value for one order among equally far items. This is that value for
a stable sort, to compare with; `average_precision` gives the mean over all orders. A database stored class by class
favours some classes here, and another order of the same database gives another value.

Nothing is sorted. The place of an item is one more than the number of nearer items, which a histogram knows, and of
equally far items before it, which a counter per distance knows on a walk through the database.
"""

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval.code_files import LabelledCodes
from deephash_pipeline.retrieval.codes import code_words
from deephash_pipeline.retrieval.counting import count_distances
from deephash_pipeline.retrieval.kernels.compiled import in_threads
from deephash_pipeline.retrieval.kernels.stable_order import walk_for_queries
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
    _check_places(k)
    query_codes, query_labels, database_codes, database_labels, _ = codes
    histograms = count_distances(*codes)
    places_that_count = len(database_codes) if k is None else min(int(k), len(database_codes))
    query_labels, database_labels = check_label_pair(
        query_labels, len(query_codes), database_labels, len(database_codes)
    )
    by_label, starts, stops = np.empty((3, 0), dtype=np.int64)
    query_label_sets = database_label_sets = np.empty((0, 0), dtype=np.uint64)
    if query_labels.ndim == 2:
        query_label_sets = code_words(np.packbits(query_labels, axis=1))
        database_label_sets = code_words(np.packbits(database_labels, axis=1))
    else:
        by_label = np.argsort(database_labels, kind="stable")
        in_order = database_labels[by_label]
        starts = np.searchsorted(in_order, query_labels, side="left")
        stops = np.searchsorted(in_order, query_labels, side="right")

    average_precision = np.empty(len(query_codes))
    shared = (
        code_words(query_codes),
        np.ascontiguousarray(code_words(database_codes).T),
        (by_label, starts, stops),
        (query_label_sets, database_label_sets),
        np.cumsum(histograms.all, axis=1) - histograms.all + 1,
        np.cumsum(histograms.relevant, axis=1) - histograms.relevant + 1,
        places_that_count,
        average_precision,
    )
    in_threads(lambda start, stop: walk_for_queries(start, stop, *shared), len(query_codes))
    return average_precision


def _check_places(k: int | None) -> None:
    if k is not None and (isinstance(k, bool) or not isinstance(k, Integral) or k < 1):
        raise InputError(f"k is {k!r}; give a whole number of items of at least 1, or None for the whole database.")
