"""Train the network as a classifier."""

from kedro.pipeline import Pipeline

from deephash_pipeline.deephash.pretrain import pretrain
from deephash_pipeline.pipelines.shared.bundles import node
from deephash_pipeline.pipelines.shared.inputs import CLASSIFIER_RUN, TRAINING_SET_FILES, VALIDATION_SET


def create_pipeline() -> Pipeline:
    """Training images, labels -> pre_train -> trunk and softmax weights, history, and the augmentation chosen."""
    outputs = ["trunk_weights", "softmax_weights", "pre_training_history", "chosen_by_trials"]
    inputs = (TRAINING_SET_FILES, VALIDATION_SET, "params:cnn_pretraining", CLASSIFIER_RUN)
    return Pipeline([node(pretrain, inputs, outputs, "pre_train")])
