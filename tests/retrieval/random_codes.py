"""Random codes with their labels: for the two ways to count, for a file and for the command."""

import numpy as np

from deephash_pipeline.retrieval import pack_bits
from deephash_pipeline.retrieval.code_files import LabelledCodes

CODE_LENGTH, CLASSES = 12, 4
RNG = np.random.default_rng(6)
QUERY_BITS, DATABASE_BITS = RNG.random((7, CODE_LENGTH)) < 0.5, RNG.random((60, CODE_LENGTH)) < 0.5
QUERY_LABELS, DATABASE_LABELS = RNG.integers(0, CLASSES, 7), RNG.integers(0, CLASSES, 60)
BITS = {
    "query_codes": QUERY_BITS,
    "query_labels": QUERY_LABELS,
    "database_codes": DATABASE_BITS,
    "database_labels": DATABASE_LABELS,
}
EQUAL = {
    **dict.fromkeys(("query_codes", "database_codes"), np.zeros((4, 2), dtype=np.uint8)),
    **dict.fromkeys(("query_labels", "database_labels"), np.zeros(4, dtype=np.int64)),
    "code_length": 12,
}


def random_problem(seed, queries, items, code_length, classes=5, prototypes=50):
    """Few prototypes give equal codes and ties; the first and the last class of the queries are not in the database."""
    rng = np.random.default_rng(seed)
    codes = pack_bits(rng.random((prototypes, code_length)) < 0.5)
    of_queries, query_labels = rng.integers(0, prototypes, queries), rng.integers(-1, classes + 1, queries)
    of_items, labels = rng.integers(0, prototypes, items), rng.integers(0, classes, items)
    return LabelledCodes(codes[of_queries], query_labels, codes[of_items], labels, code_length)


def in_order(problem, rows):
    """Chosen rows of the database."""
    return problem._replace(database_codes=problem.database_codes[rows], database_labels=problem.database_labels[rows])


def is_relevant(problem, label):
    """Which items share a class with a query."""
    if problem.query_labels.ndim == 2:
        return np.any(problem.database_labels & label, axis=1)
    return problem.database_labels == label


def distances_to(problem, code):
    return np.bitwise_count(problem.database_codes ^ code).sum(axis=1, dtype=np.int64)
