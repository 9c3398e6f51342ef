"""What an item shows, and so which items are relevant to which query."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError


def check_labels(labels: NDArray[np.integer[Any]], name: str, expected: int | None = None) -> NDArray[np.int64]:
    """Return labels as int64 of shape (n,) once they are known to be one whole number per item.

    Two unsigned 64-bit labels that differ still differ as int64, whereas numpy compares uint64 with int64 as floats.

    Raises:
        InputError: if `labels` is not a one-dimensional array of integers, is empty, or has not `expected` entries.
    """
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(f"{name} must be a one-dimensional integer array; give one class number per item.")
    _check_number(labels, name, expected)
    return labels.astype(np.int64, copy=False)


def check_label_pair(
    query_labels: NDArray[Any], queries: int, database_labels: NDArray[Any], items: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the labels of queries and of a database once both are of one kind, and as many as there are codes.

    Returns:
        Either int64 (n,), one class number per item, or bool (n, classes), the labels that each item carries.

    Raises:
        InputError: if one array is neither, the two are of different kinds, or one has not the number of rows given.
    """
    several = [isinstance(labels, np.ndarray) and labels.ndim == 2 for labels in (query_labels, database_labels)]
    if not any(several):
        return check_labels(query_labels, "query_labels", queries), check_labels(
            database_labels, "database_labels", items
        )
    if not all(several) or query_labels.dtype != np.bool_ or database_labels.dtype != np.bool_:
        raise InputError(
            "query_labels and database_labels must both be one class number per item, or both be two-dimensional bool "
            "arrays (items, classes)."
        )
    if query_labels.shape[1] != database_labels.shape[1]:
        raise InputError(
            f"query_labels has {query_labels.shape[1]} classes and database_labels {database_labels.shape[1]}; "
            "give both a column for every class."
        )
    _check_number(query_labels, "query_labels", queries)
    _check_number(database_labels, "database_labels", items)
    return query_labels, database_labels


def _check_number(labels: NDArray[Any], name: str, expected: int | None) -> None:
    if expected is not None and len(labels) != expected:
        raise InputError(f"{name} has {len(labels)} entries for {expected} codes; give one class number per code.")
    if not len(labels):
        raise InputError(f"{name} is empty; give at least one item.")
