"""Stage 2: train the network as a classifier."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.pipelines.cnn_pretraining.nodes import pre_train


def create_pipeline() -> Pipeline:
    """Training images, labels -> pre_train -> trunk_weights, softmax_weights, pre_training_history."""
    return Pipeline(
        [
            Node(
                pre_train,
                inputs=[
                    "training_images",
                    "training_labels",
                    "validation_images",
                    "validation_labels",
                    "pixel_statistics",
                    "class_names",
                    "params:cnn_pretraining",
                    "params:experiment",
                    "pre_training_checkpoints",
                ],
                outputs=["trunk_weights", "softmax_weights", "pre_training_history"],
                name="pre_train",
            )
        ]
    )
