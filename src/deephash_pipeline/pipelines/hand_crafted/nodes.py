"""Stage 2 of pre-training on a descriptor, and hand-crafted beside network features."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.images.descriptors.hand_crafted import DESCRIPTORS, HandCraftedParameters
from deephash_pipeline.pipelines.grid import compared_cells
from deephash_pipeline.reports.cells import cell_protocol
from deephash_pipeline.reports.paper.tables import features_of_benchmark


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
        parameters: parameters that say which descriptor it is.
        experiment: configuration that says which benchmark it is.
        names: method -> name.
        *descriptor_metrics: metrics of the cells on the descriptor.

    Returns:
        Columns `feature`, `method` (display names), `code_length`, `measured`, `published`, `difference`; NaN where the
        grid's cell has not been evaluated by the paper's protocol, or the paper prints nothing for this descriptor.
    """
    by_network = {
        (names[cell["method"]], cell["code_length"]): cell["mean_average_precision"]
        for cell in evaluated_cells.values()
        if cell["method"] in names and cell_protocol(cell).name == "paper"
    }
    by_hand = {
        (names[cell.method], cell.bits): metrics["mean_average_precision"]
        for cell, metrics in zip(compared_cells(), descriptor_metrics, strict=True)
        if cell_protocol(metrics).name == "paper"
    }
    feature = DESCRIPTORS[parameters.descriptor]
    return features_of_benchmark(experiment.benchmark, feature, (by_hand, by_network), names)
