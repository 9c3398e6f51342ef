"""Stage 2 of pre-training: the hash layer, trained on z."""

import pandas as pd
from torch import Tensor

from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.initialise import HashLayerInitParameters, initialise_hash_layer
from deephash_pipeline.deephash.training_set import LabelledFeatures
from deephash_pipeline.hashing import Encoder
from deephash_pipeline.pipelines.shared.fitting import encode_z
from deephash_pipeline.pipelines.shared.searching import Sets
from deephash_pipeline.retrieval import CodeSets


def initialise_and_encode(
    features: LabelledFeatures, parameters: HashLayerInitParameters, run: Run, z: Sets
) -> tuple[dict[str, Tensor], Encoder, pd.DataFrame, CodeSets]:
    """Train the hash layer on z, see `initialise_hash_layer`, and hash the three sets by it."""
    made = initialise_hash_layer(features, parameters, run)
    return *made, encode_z(made.encoder, z)
