"""Means and standard deviations over seeds, and which methods are worse than the best."""

import re
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.pipelines.grid import METHODS
from deephash_pipeline.pipelines.shared.searching import Sets, finds_anything, searched
from deephash_pipeline.reports.seeds import Scores, seeds_table
from deephash_pipeline.retrieval import CodeSets, average_precision_at, count_distances
from deephash_pipeline.retrieval.protocols import Protocol, require_protocol
from deephash_pipeline.tuning.significance import SignificanceParameters

CODES_OF_CELL = re.compile(r"(?P<method>\w+)/b(?P<bits>\d+)/(r(?P<replicate>\d+)/)?codes\.npz")
"""File of the codes of a cell, by one of several seeds."""


def compare_methods(
    codes: Mapping[str, CodeSets],
    labels: Sets,
    protocol: str,
    parameters: SignificanceParameters,
    names: dict[str, str],
) -> pd.DataFrame:
    """Compare the methods whose codes are there, with the seeds that are there, at each code length.

    Args:
        codes: ``<method>/b<bits>/codes.npz``, ``<method>/b<bits>/r<replicate>/codes.npz`` to the codes of a cell.
        labels: class labels of the three sets.
        protocol: protocol that the methods are compared by; by the one beside it they are compared too.
        parameters: parameters of the test.
        names: method -> name, in the order of the rows.

    Returns:
        The rows of `seeds_table` for each protocol, named in the first column.

    Raises:
        InputError: there are no codes, codes of other images, or no database has what the queries look for.
    """
    tables = []
    of_codes = require_protocol(protocol)
    for by in (of_codes, *([require_protocol(of_codes.beside)] if of_codes.beside else [])):
        scores = map_of_seeds(codes, labels, by)
        if scores is not None:
            table = seeds_table(scores, names, parameters)
            table.insert(0, "protocol", by.name)
            tables.append(table)
    if not tables:
        raise InputError(f"no query has an image of its class to find by protocol {protocol}: set protocol to another")
    return pd.concat(tables, ignore_index=True)


def map_of_seeds(codes: Mapping[str, CodeSets], labels: Sets, protocol: Protocol) -> Scores | None:
    """Measure mAP in all replicates of all cells; None if no query finds any."""
    scores: dict[tuple[str, int], list[float]] = {}
    for (method, bits, _), path in sorted(_cells_of(codes).items()):
        own = codes[path]
        try:
            database = searched(protocol, own, labels)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        if not finds_anything(labels.query, database.labels):
            return None
        histograms = count_distances(own.query, labels.query, database.codes, database.labels, own.code_length)
        average_precisions = average_precision_at(histograms, protocol.k or histograms.database_size)
        scores.setdefault((method, bits), []).append(float(np.nanmean(average_precisions)))
    if not scores:
        raise InputError(
            "there are no codes to compare: run some cells first, and `--params=replicate=2` for another seed"
        )
    return scores


def _cells_of(paths: Iterable[str]) -> dict[tuple[str, int, int], str]:
    """Find codes of methods of the grid: method, code length and number of the seed -> path."""
    found = {path: match for path in paths if (match := CODES_OF_CELL.fullmatch(path)) and match["method"] in METHODS}
    return {(m["method"], int(m["bits"]), int(m["replicate"] or 1)): path for path, m in found.items()}
