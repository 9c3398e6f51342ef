"""Stage 2 on a descriptor, and hand-crafted beside network features."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from deephash_pipeline.grid import METHODS, Cell, compared_cells, on_descriptor
from deephash_pipeline.hashing import Encoder, LearnedHashLayer
from deephash_pipeline.hashing.base import row_blocks
from deephash_pipeline.hashing.linear import feature_mean, hyperplanes_through
from deephash_pipeline.pipelines.descriptor_extraction.nodes import DESCRIPTORS, HandCraftedParameters
from deephash_pipeline.pipelines.experiment import ExperimentParameters
from deephash_pipeline.pipelines.hash_layer_init.nodes import HashLayerInitParameters, initialise_hash_layer
from deephash_pipeline.reports import HAND_CRAFTED_FEATURES, published_hand_crafted_map, published_map
from deephash_pipeline.training import CheckpointFolder


def initialise_on_descriptor(
    training_descriptor: NDArray[np.float32],
    training_labels: NDArray[np.int64],
    class_names: list[str],
    cell: Cell,
    parameters: HashLayerInitParameters,
    experiment: ExperimentParameters,
    checkpoints: CheckpointFolder | None = None,
) -> tuple[Encoder, pd.DataFrame]:
    """Train the hash layer as stage 2 does on z, on the descriptor standardised over the training set.

    Returns:
        The encoder of the descriptor as it comes, the standardisation being part of its hyperplanes, and a row of
        figures an epoch.
    """
    mean, deviation = moments(training_descriptor)
    standardised = np.empty(training_descriptor.shape, dtype=np.float32)
    for rows in row_blocks(training_descriptor):
        standardised[rows] = (training_descriptor[rows] - mean) / deviation
    hash_layer, _, history = initialise_hash_layer(
        standardised, training_labels, class_names, cell, parameters, experiment, checkpoints
    )
    # w . (x - mean) / deviation >= 0: the layer has no bias.
    directions = hash_layer["weight"].numpy().T / deviation[:, np.newaxis]
    return LearnedHashLayer.from_arrays(cell.bits, hyperplanes_through(mean, directions)), history


def moments(descriptor: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each feature of (n, features); 1 as the deviation of a constant one."""
    mean = feature_mean(descriptor)
    squares = np.zeros_like(mean)
    for rows in row_blocks(descriptor):
        squares += np.square(descriptor[rows] - mean).sum(axis=0)
    deviation = np.sqrt(squares / len(descriptor))
    # The mean of equal float32 values may differ from them by a rounding error.
    return mean, np.where(deviation > np.finfo(np.float32).eps * np.abs(mean), deviation, 1.0)


def tabulate_features(
    evaluated_cells: Mapping[str, Mapping[str, Any]],
    parameters: HandCraftedParameters,
    experiment: ExperimentParameters,
    *descriptor_metrics: Mapping[str, Any],
) -> pd.DataFrame:
    """Lay out mean average precision on the descriptor and on z, measured beside published.

    Args:
        evaluated_cells: metrics of cells, as many as there are, by their files' names.
        parameters: say which descriptor it is.
        experiment: says which benchmark it is.
        *descriptor_metrics: metrics of the cells on the descriptor.

    Returns:
        Columns `feature`, `method` (display names), `code_length`, `measured`, `published`, `difference`; NaN where the
        grid's cell has not been evaluated, or the paper prints nothing for this descriptor.
    """
    measured = {
        (metrics["method"], metrics["code_length"]): metrics["mean_average_precision"]
        for metrics in (*evaluated_cells.values(), *descriptor_metrics)
    }
    benchmark = experiment.benchmark
    feature = DESCRIPTORS[parameters.descriptor]
    of_the_paper = HAND_CRAFTED_FEATURES.get(benchmark) == feature
    rows: list[tuple[str, Cell, Cell, float | None]] = []
    for cell in compared_cells():
        printed = published_hand_crafted_map(benchmark, cell.method, cell.bits) if of_the_paper else None
        rows.append((feature, cell, on_descriptor(cell), printed))
    for cell in compared_cells():
        rows.append(("CNN", cell, cell, published_map(benchmark, cell.method, cell.bits)))
    table = pd.DataFrame(
        {
            "feature": feature,
            "method": METHODS[cell.method],
            "code_length": cell.bits,
            "measured": measured.get((stored.method, stored.bits), math.nan),
            "published": math.nan if printed is None else printed,
        }
        for feature, cell, stored, printed in rows
    )
    return table.assign(difference=table["measured"] - table["published"])
