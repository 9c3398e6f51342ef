"""Train the network as a classifier."""

from kedro.pipeline import Pipeline

from deephash_pipeline.deephash.pretrain import pretrain
from deephash_pipeline.pipelines.shared.bundles import node
from deephash_pipeline.pipelines.shared.inputs import (
    CLASSIFIER_RUN,
    CLASSIFIER_RUN_OF_REPLICATE,
    TRAINING_SET,
    VALIDATION_SET,
)


def create_pipeline(further_replicate: bool = False) -> Pipeline:
    """Training images, labels -> pre_train -> trunk_weights, softmax_weights, pre_training_history.

    Args:
        further_replicate: True if it is by another seed than the first, that of the replicate of `params:cell`.
    """
    run = CLASSIFIER_RUN_OF_REPLICATE if further_replicate else CLASSIFIER_RUN
    outputs = ["trunk_weights", "softmax_weights", "pre_training_history"]
    inputs = (TRAINING_SET, VALIDATION_SET, "params:cnn_pretraining", run)
    return Pipeline([node(pretrain, inputs, outputs, "pre_train")])
