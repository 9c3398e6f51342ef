"""The same queries against images that no training has seen."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError
from deephash_pipeline.grid import METHODS, cells
from deephash_pipeline.retrieval import CodeSets, chance_level, count_distances, mean_average_precision

COLUMNS = [
    "method",
    "code_length",
    "state",
    "mean_average_precision",
    "training_mean_average_precision",
    "queries",
    "database_size",
    "chance_level",
]


def measure_held_out(
    codes: Mapping[str, CodeSets],
    query_labels: NDArray[Any],
    validation_labels: NDArray[Any],
    training_labels: NDArray[Any],
) -> pd.DataFrame:
    """Rank the validation images for every query, in each cell whose codes are there.

    Args:
        codes: ``<method>/b<bits>/codes.npz`` to the codes of a cell.
        query_labels: of the queries, (queries,), or (queries, classes) where images have several.
        validation_labels: of the held-out database, likewise.
        training_labels: of the usual database, likewise.

    Returns:
        A row for each cell of the grid: method (display name), code_length, state (``measured`` or ``not run``), mAP
        against the held-out database and against the training set beside it, queries, database_size and chance_level of
        the held-out database. mAP is NaN where a cell was not run or no query has a relevant item.

    Raises:
        InputError: no validation images, or codes that are not those of the images.
    """
    if not len(validation_labels):
        raise InputError("there are no held-out images: set data_ingestion.validation_share or unseen_classes")
    of_database = {
        "queries": len(query_labels),
        "database_size": len(validation_labels),
        "chance_level": chance_level(query_labels, validation_labels),
    }
    rows = []
    for cell in cells():
        row = {"method": METHODS[cell.method], "code_length": cell.code_length, "state": "not run", **of_database}
        own = codes.get(f"{cell.namespace.replace('.', '/')}/codes.npz")
        if own is not None:
            held = [len(own.query), len(own.validation), len(own.database)]
            if held != [len(query_labels), len(validation_labels), len(training_labels)]:
                raise InputError(f"the codes of {cell.namespace} are not those of the images here: encode them again")
            row |= {
                "code_length": own.code_length,
                "state": "measured",
                "mean_average_precision": _score(own, query_labels, own.validation, validation_labels),
                "training_mean_average_precision": _score(own, query_labels, own.database, training_labels),
            }
        rows.append(row)
    return pd.DataFrame(rows, columns=COLUMNS).astype({"code_length": "Int64"})


def _score(codes: CodeSets, query_labels: NDArray[Any], database: NDArray[np.uint8], labels: NDArray[Any]) -> float:
    """Mean average precision of the queries against a database; NaN where it holds nothing that they look for."""
    if query_labels.ndim == 1 and not np.isin(query_labels, labels).any():
        return math.nan
    return mean_average_precision(count_distances(codes.query, query_labels, database, labels, codes.code_length))
