"""Pre-training, stage 2: the hash layer learns to classify on frozen features."""

import pandas as pd
from torch import Tensor

from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.initialise import HashLayerInitParameters, initialise_hash_layer
from deephash_pipeline.deephash.training_set import LabelledFeatures
from deephash_pipeline.hashing.base import Encoder


def initialise(
    features: LabelledFeatures, parameters: HashLayerInitParameters, run: Run
) -> tuple[dict[str, Tensor], Encoder, pd.DataFrame]:
    """Train the hash layer on z; returns its weight, the encoder it amounts to, and a row of metrics for each epoch."""
    weights, encoder, history = initialise_hash_layer(features, parameters, run)
    return weights, encoder, run.named(history, "hash_layer_initialisation")
