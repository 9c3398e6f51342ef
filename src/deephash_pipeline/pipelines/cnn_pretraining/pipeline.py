"""Stage 2: train the network as a classifier."""

from kedro.pipeline import Pipeline

from deephash_pipeline.pipelines.cnn_pretraining.nodes import pre_train
from deephash_pipeline.pipelines.shared.inputs import CLASSIFIER_RUN, TRAINING_SET, VALIDATION_SET, node


def create_pipeline() -> Pipeline:
    """Training images, labels -> pre_train -> trunk_weights, softmax_weights, pre_training_history."""
    return Pipeline(
        [
            node(
                pre_train,
                [TRAINING_SET, VALIDATION_SET, "params:cnn_pretraining", CLASSIFIER_RUN],
                ["trunk_weights", "softmax_weights", "pre_training_history"],
                "pre_train",
            )
        ]
    )
