"""Stage 2 of pre-training on a descriptor, and hand-crafted beside network features."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash.experiment import Experiment, Run
from deephash_pipeline.deephash.initialise import HashLayerInitParameters, initialise_on_raw_features
from deephash_pipeline.deephash.training_set import LabelledFeatures
from deephash_pipeline.hashing.base import Encoder
from deephash_pipeline.images.descriptors.hand_crafted import DESCRIPTORS, HandCraftedParameters
from deephash_pipeline.pipelines.grid import compared_cells, on_descriptor
from deephash_pipeline.pipelines.shared.histories import of_cell
from deephash_pipeline.reports.cells import cell_protocol
from deephash_pipeline.reports.paper.published import published_hand_crafted_map, published_map
from deephash_pipeline.reports.paper.tables import HAND_CRAFTED_FEATURES


def initialise_on_descriptor(
    features: LabelledFeatures, parameters: HashLayerInitParameters, run: Run
) -> tuple[Encoder, pd.DataFrame]:
    """Train the hash layer on the descriptor; returns its encoder and a row of metrics for each epoch."""
    _, encoder, history = initialise_on_raw_features(features, parameters, run)
    return encoder, of_cell(history, run, "hash_layer_initialisation")


def tabulate_features(
    evaluated_cells: Mapping[str, Mapping[str, Any]],
    parameters: HandCraftedParameters,
    experiment: Experiment,
    names: dict[str, str],
    *descriptor_metrics: Mapping[str, Any],
) -> pd.DataFrame:
    """Lay out mean average precision on the descriptor and on z, measured beside published.

    Args:
        evaluated_cells: metrics of cells, as many as there are, by their files' names.
        parameters: say which descriptor it is.
        experiment: says which benchmark it is.
        names: method -> name.
        *descriptor_metrics: metrics of the cells on the descriptor.

    Returns:
        Columns `feature`, `method` (display names), `code_length`, `measured`, `published`, `difference`; NaN where the
        grid's cell has not been evaluated by the paper's protocol, or the paper prints nothing for this descriptor.
    """
    of_all = (*evaluated_cells.values(), *descriptor_metrics)
    measured = {
        (metrics["method"], metrics["code_length"]): metrics["mean_average_precision"]
        for metrics in of_all
        if cell_protocol(metrics).name == "paper"
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
            "method": names[cell.method],
            "code_length": cell.bits,
            "measured": measured.get((stored.method, stored.bits), math.nan),
            "published": math.nan if printed is None else printed,
        }
        for feature, cell, stored, printed in rows
    )
    return table.assign(difference=table["measured"] - table["published"])
