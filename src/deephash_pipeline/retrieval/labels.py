"""Labels of items, and which items are relevant to which query."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError


def share_a_label(labels: NDArray[Any], others: NDArray[Any]) -> NDArray[np.bool_]:
    """Compare labels (n,) or multi-hot (n, classes) with others of the same kind, (m,) or (m, classes): bool (n, m).

    Example:
        >>> share_a_label(np.array([[1, 0], [1, 1]]), np.array([[0, 1]])).tolist()
        [[False], [True]]
    """
    if labels.ndim == 1:
        equal: NDArray[np.bool_] = np.equal.outer(labels, others)
        return equal
    # Counts of shared labels are exact in float32.
    similar: NDArray[np.bool_] = labels.astype(np.float32) @ others.astype(np.float32).T > 0
    return similar


def check_labels(labels: NDArray[np.integer[Any]], name: str, expected: int | None = None) -> NDArray[np.int64]:
    """Return labels as int64 of shape (n,) once they are known to be one whole number per item.

    Two unsigned 64-bit labels that differ still differ as int64, whereas numpy compares uint64 with int64 as floats.

    Raises:
        InputError: if `labels` is not a one-dimensional array of integers, is empty, or has not `expected` entries.

    Example:
        >>> check_labels(np.array([3, 1], dtype=np.uint8), "labels", expected=2)
        array([3, 1])
    """
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise InputError(f"{name} must be a one-dimensional integer array; give one class number per item.")
    _check_number(labels, name, expected)
    return labels.astype(np.int64, copy=False)


def check_label_pair(
    query_labels: NDArray[Any], queries: NDArray[Any], database_labels: NDArray[Any], items: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the labels of queries and of a database once both are of one kind, and as many as there are codes.

    Args:
        query_labels: whole numbers (queries,); or bool, or uint8 of 0 and 1, (queries, classes).
        queries: codes or features of the queries, a row for each.
        database_labels: labels of the items, as those of the queries.
        items: codes or features of the items, a row for each.

    Returns:
        Either int64 (n,), one class number per item, or bool (n, classes), the labels that each item carries.

    Raises:
        InputError: if one array is neither, the two are of different kinds, or there are not as many labels as rows.

    Example:
        >>> several, codes = np.array([[1, 0], [1, 1]], dtype=np.uint8), np.array([[7], [8]], dtype=np.uint8)
        >>> check_label_pair(several[:1], codes[:1], several, codes)[0]
        array([[ True, False]])
    """
    several = [isinstance(labels, np.ndarray) and labels.ndim == 2 for labels in (query_labels, database_labels)]
    if not any(several):
        return check_labels(query_labels, "query_labels", len(queries)), check_labels(
            database_labels, "database_labels", len(items)
        )
    if not all(several) or any(labels.dtype not in (np.bool_, np.uint8) for labels in (query_labels, database_labels)):
        raise InputError(
            "query_labels and database_labels must both be one class number per item, or both be two-dimensional, "
            "(items, classes) of bool or uint8."
        )
    if query_labels.shape[1] != database_labels.shape[1]:
        raise InputError(
            f"query_labels has {query_labels.shape[1]} classes and database_labels {database_labels.shape[1]}; "
            "give both a column for every class."
        )
    _check_number(query_labels, "query_labels", len(queries))
    _check_number(database_labels, "database_labels", len(items))
    return _as_bool(query_labels, "query_labels"), _as_bool(database_labels, "database_labels")


def label_names(labels: NDArray[Any], class_names: Sequence[str]) -> list[str]:
    """Name what each item shows, several labels one after another.

    Args:
        labels: class numbers (n,), or multi-hot (n, classes).
        class_names: names of the classes.

    Example:
        >>> label_names(np.array([[1, 1], [0, 0]], dtype=np.uint8), ["sky", "sea"])
        ['sky, sea', 'no label']
    """
    if labels.ndim == 1:
        return [class_names[label] for label in labels]
    return [", ".join(class_names[label] for label in np.flatnonzero(row).tolist()) or "no label" for row in labels]


def _as_bool(labels: NDArray[Any], name: str) -> NDArray[np.bool_]:
    if labels.size and labels.dtype == np.uint8 and labels.max() > 1:
        raise InputError(f"{name} holds {labels.max()}; give 1 for each label that an item carries, else 0.")
    return labels.view(np.bool_)


def _check_number(labels: NDArray[Any], name: str, expected: int | None) -> None:
    if expected is not None and len(labels) != expected:
        raise InputError(f"{name} has {len(labels)} entries for {expected} codes; give one class number per code.")
    if not len(labels):
        raise InputError(f"{name} is empty; give at least one item.")
