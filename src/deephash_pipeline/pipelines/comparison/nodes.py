"""Means and standard deviations over seeds, and which methods are worse than the best."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.pipelines.grid import ALL_CODE_LENGTHS, FURTHER_REPLICATES, cells, replicated
from deephash_pipeline.pipelines.shared.searching import Sets, finds_anything, searched
from deephash_pipeline.reports.seeds import Scores, seeds_table
from deephash_pipeline.retrieval import CodeSets, average_precision_at, count_distances
from deephash_pipeline.retrieval.protocols import Protocol, require_protocol
from deephash_pipeline.tuning.significance import SignificanceParameters

REPLICATES = {
    f"{cell.namespace.replace('.', '/')}/codes.npz": (cell.method, cell.code_length)
    for cell in (
        *cells(code_lengths=ALL_CODE_LENGTHS),
        *(cell for replicate in FURTHER_REPLICATES for cell in replicated(replicate)),
    )
    if cell.code_length is not None
}
"""File of the codes of each replicate of each cell -> method and code length, by order of the seeds.

Long codes have no further replicates.
"""


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
    for path, cell in REPLICATES.items():
        own = codes.get(path)
        if own is None:
            continue
        try:
            database = searched(protocol, own, labels)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
        if not finds_anything(labels.query, database.labels):
            return None
        histograms = count_distances(own.query, labels.query, database.codes, database.labels, own.code_length)
        average_precisions = average_precision_at(histograms, protocol.k or histograms.database_size)
        scores.setdefault(cell, []).append(float(np.nanmean(average_precisions)))
    if not scores:
        raise InputError("there are no codes to compare: run some cells first, and `--pipelines=seeds` for more seeds")
    return scores
