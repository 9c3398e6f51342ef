"""The paper's method as a library, without Kedro: `DeepHash` learns a hash function, `ImageHasher` applies one.

The stages of Algorithm 1 are functions of a training set, parameters and a run: `pretrain`, `initialise_hash_layer`,
`fine_tune`.
"""

from deephash_pipeline.deephash.estimator import DeepHash
from deephash_pipeline.deephash.experiment import ClassifierRun, Experiment, Run
from deephash_pipeline.deephash.feature_hash import FeatureHash
from deephash_pipeline.deephash.features import FeatureExtractor
from deephash_pipeline.deephash.fine_tune import FineTuned, FineTuningParameters, PreTrainedWeights, fine_tune
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.deephash.initialise import (
    HashLayerInitParameters,
    InitialisedHashLayer,
    hash_layer_encoder,
    initialise_hash_layer,
    initialise_on_raw_features,
)
from deephash_pipeline.deephash.pretrain import PreTrained, PreTrainingParameters, extract_features, pretrain
from deephash_pipeline.deephash.training_set import LabelledFeatures, LabelledImages, TrainingSet
from deephash_pipeline.hashers import BaseHasher, EncodedImages, HasherDescription

__all__ = [
    "BaseHasher",
    "ClassifierRun",
    "DeepHash",
    "EncodedImages",
    "Experiment",
    "FeatureExtractor",
    "FeatureHash",
    "FineTuned",
    "FineTuningParameters",
    "HashLayerInitParameters",
    "HasherDescription",
    "ImageHasher",
    "InitialisedHashLayer",
    "LabelledFeatures",
    "LabelledImages",
    "PreTrained",
    "PreTrainedWeights",
    "PreTrainingParameters",
    "Run",
    "TrainingSet",
    "extract_features",
    "fine_tune",
    "hash_layer_encoder",
    "initialise_hash_layer",
    "initialise_on_raw_features",
    "pretrain",
]
