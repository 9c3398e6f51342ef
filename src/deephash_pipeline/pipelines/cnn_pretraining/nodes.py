"""Pre-training, stage 1: the network learns to classify."""

import pandas as pd
from torch import Tensor

from deephash_pipeline.deephash.experiment import ClassifierRun
from deephash_pipeline.deephash.pretrain import PreTrainingParameters, pretrain
from deephash_pipeline.deephash.training_set import LabelledImages, TrainingSet


def pre_train(
    training_set: TrainingSet, validation_set: LabelledImages, parameters: PreTrainingParameters, run: ClassifierRun
) -> tuple[dict[str, Tensor], dict[str, Tensor], pd.DataFrame]:
    """Train trunk and softmax layer; returns the state of each, and a row of metrics for each epoch."""
    trunk, softmax, history = pretrain(training_set, validation_set, parameters, run)
    return trunk, softmax, history.assign(method=None, code_length=None, stage="softmax_pre_training")
