"""Stage 2 of pre-training on a descriptor, and hand-crafted beside network features."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from deephash_pipeline.deephash.experiment import Experiment, Run
from deephash_pipeline.deephash.initialise import HashLayerInitParameters, initialise_on_raw_features
from deephash_pipeline.deephash.training_set import LabelledFeatures
from deephash_pipeline.hashing import Encoder
from deephash_pipeline.images.descriptors.hand_crafted import DESCRIPTORS, HandCraftedParameters
from deephash_pipeline.pipelines.grid import compared_cells, on_descriptor
from deephash_pipeline.pipelines.shared.fitting import encode_z
from deephash_pipeline.pipelines.shared.searching import Sets
from deephash_pipeline.reports.paper.tables import features_of_benchmark, scores_by_paper
from deephash_pipeline.retrieval import CodeSets


def initialise_and_encode(
    features: LabelledFeatures, parameters: HashLayerInitParameters, run: Run, z: Sets
) -> tuple[Encoder, pd.DataFrame, CodeSets]:
    """Train the hash layer on a descriptor, see `initialise_on_raw_features`, and hash the three sets by it."""
    encoder, history = initialise_on_raw_features(features, parameters, run)
    return encoder, history, encode_z(encoder, z)


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
    on_descriptors = {on_descriptor(cell).method: names[cell.method] for cell in compared_cells()}
    by_hand = scores_by_paper(descriptor_metrics, on_descriptors)
    by_network = scores_by_paper(evaluated_cells.values(), names)
    feature = DESCRIPTORS[parameters.descriptor]
    return features_of_benchmark(experiment.benchmark, feature, (by_hand, by_network), names)
