"""The paper's method as a library, without Kedro: `DeepHash` learns a hash function, `ImageHasher` applies one.

The stages of Algorithm 1 are functions of a training set, parameters and a run: `pretrain`, `initialise_hash_layer`,
`fine_tune`.
"""

from deephash_pipeline.deephash.estimator import DeepHash
from deephash_pipeline.deephash.experiment import ClassifierRun, Experiment, Run
from deephash_pipeline.deephash.feature_hash import FeatureHash
from deephash_pipeline.deephash.features import FeatureExtractor
from deephash_pipeline.deephash.fine_tune import PreTrainedWeights, fine_tune
from deephash_pipeline.deephash.fine_tuning_parameters import FineTuningParameters
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.deephash.initialise import HashLayerInitParameters, initialise_hash_layer
from deephash_pipeline.deephash.pretrain import extract_features, pretrain
from deephash_pipeline.deephash.pretraining_parameters import PreTrainingParameters
from deephash_pipeline.deephash.training_set import LabelledFeatures, LabelledImages, TrainingSet

__all__ = [
    "ClassifierRun",
    "DeepHash",
    "Experiment",
    "FeatureExtractor",
    "FeatureHash",
    "FineTuningParameters",
    "HashLayerInitParameters",
    "ImageHasher",
    "LabelledFeatures",
    "LabelledImages",
    "PreTrainedWeights",
    "PreTrainingParameters",
    "Run",
    "TrainingSet",
    "extract_features",
    "fine_tune",
    "initialise_hash_layer",
    "pretrain",
]
