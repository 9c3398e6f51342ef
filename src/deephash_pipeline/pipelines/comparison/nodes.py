"""Means and standard deviations over seeds, and which methods are worse than the best."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from plotly.graph_objects import Figure

from deephash_pipeline import reports
from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.errors import InputError
from deephash_pipeline.grid import FURTHER_REPLICATES, METHOD_GROUPS, METHODS, cells, replicated
from deephash_pipeline.randomness import derive_seed
from deephash_pipeline.reports import Scores
from deephash_pipeline.retrieval import CodeSets, average_precision, count_distances
from deephash_pipeline.significance import SignificanceParameters

REPLICATES = {
    f"{cell.namespace.replace('.', '/')}/codes.npz": (cell.method, cell.code_length)
    for cell in (*cells(), *(cell for replicate in FURTHER_REPLICATES for cell in replicated(replicate)))
    if cell.code_length is not None
}
"""File of the codes of each replicate of each cell of the grid -> method and code length, by order of the seeds."""


def compare_methods(
    codes: Mapping[str, CodeSets],
    query_labels: NDArray[np.int64],
    validation_labels: NDArray[np.int64],
    training_labels: NDArray[np.int64],
    parameters: SignificanceParameters,
    experiment: Experiment,
) -> pd.DataFrame:
    """Compare the methods whose codes are there, with the seeds that are there, at each code length.

    Args:
        codes: ``<method>/b<bits>/codes.npz``, ``<method>/b<bits>/r<replicate>/codes.npz`` to the codes of a cell.
        query_labels: of the queries, (queries,).
        validation_labels: of images that no training has seen, (items,); none, no comparison with them as the database.
        training_labels: of the paper's database, (training images,).
        parameters: of the bootstrap.
        experiment: whose seed the resamples derive from.

    Returns:
        The rows of `reports.seeds_table` for each database, named in the first column: ``training`` or ``held out``.

    Raises:
        InputError: there are no codes, codes of other images, or no database has what the queries look for.
    """
    tables = []
    for name, labels in (("training", training_labels), ("held out", validation_labels)):
        if np.isin(query_labels, labels).any():
            scores = score_queries(codes, query_labels, name, labels)
            table = reports.seeds_table(scores, METHODS, parameters, derive_seed(experiment.seed, "comparison", name))
            table.insert(0, "database", name)
            tables.append(table)
    if not tables:
        raise InputError("no query has an image of its class in the training or the validation set")
    return pd.concat(tables, ignore_index=True)


def score_queries(
    codes: Mapping[str, CodeSets], query_labels: NDArray[np.int64], database: str, labels: NDArray[np.int64]
) -> Scores:
    """Measure every query's average precision in each replicate of each cell that is there."""
    scores: dict[tuple[str, int], list[NDArray[np.float64]]] = {}
    for path, cell in REPLICATES.items():
        own = codes.get(path)
        if own is None:
            continue
        searched = own.database if database == "training" else own.validation
        if [len(own.query), len(searched)] != [len(query_labels), len(labels)]:
            raise InputError(f"the codes in {path} are not those of the images here: encode them again")
        histograms = count_distances(own.query, query_labels, searched, labels, own.code_length)
        scores.setdefault(cell, []).append(average_precision(histograms))
    if not scores:
        raise InputError("there are no codes to compare: run some cells first, and `--pipelines=seeds` for more seeds")
    return {cell: np.stack(of_seeds) for cell, of_seeds in scores.items()}


def write_page(table: pd.DataFrame, experiment: Experiment, parameters: SignificanceParameters) -> str:
    """Write the tables of the comparison for readers."""
    return reports.seeds_page(table, experiment.benchmark, parameters)


def draw_comparison(table: pd.DataFrame) -> Figure:
    """Draw mean mAP against code length with the deviations of the seeds."""
    return reports.figure_seeds(table, METHODS, METHOD_GROUPS)
