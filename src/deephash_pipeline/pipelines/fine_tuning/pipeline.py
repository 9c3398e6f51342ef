"""Stage 6: train all layers on a hashing loss."""

from collections.abc import Sequence

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.grid import DEEP_RIVALS, FINE_TUNINGS, PRE_TRAINING, RANDOM_INITIALISATION, Cell, cells
from deephash_pipeline.pipelines.fine_tuning.nodes import encode_images, fine_tune, train_from_random_initialisation
from deephash_pipeline.pipelines.histories import joining_node

TRAINING_SET = ["training_images", "training_labels", "pixel_statistics"]
PARAMETERS = ["params:cell", "params:fine_tuning", "params:experiment", "checkpoints"]
RESULTS = ["tuned_trunk_weights", "encoder", "history"]


def create_pipeline(code_lengths: Sequence[int]) -> Pipeline:
    """Instantiate one template for fine-tuning, by any loss, and one for random initialisation.

    ::

        images, trunk_weights, deephash_pretrained.b<bits>.hash_layer -> fine_tune
        fine_tune -> <cell>.{tuned_trunk_weights, encoder, history}
        <cell>.encoder, images -> encode -> <cell>.codes
    """
    encode = Node(
        encode_images,
        inputs=[
            "encoder",
            "tuned_trunk_weights",
            "training_images",
            "validation_images",
            "query_images",
            "pixel_statistics",
            "params:experiment",
        ],
        outputs="codes",
        name="encode",
    )
    fine_tuning = Pipeline(
        [
            Node(
                fine_tune,
                inputs=[*TRAINING_SET, "trunk_weights", "initial_hash_layer", *PARAMETERS],
                outputs=RESULTS,
                name="fine_tune",
            ),
            encode,
        ]
    )
    deephash_random_start = Pipeline(
        [
            Node(
                train_from_random_initialisation,
                inputs=[*TRAINING_SET, *PARAMETERS],
                outputs=RESULTS,
                name="train",
            ),
            encode,
        ]
    )
    images = {*TRAINING_SET, "validation_images", "query_images"}
    pre_trained = (*FINE_TUNINGS, *DEEP_RIVALS)

    def instance(template: Pipeline, cell: Cell, inputs: dict[str, str]) -> Pipeline:
        return Pipeline(
            template,
            namespace=cell.namespace,
            inputs={**{name: name for name in images}, **inputs},
            parameters={
                "params:cell": f"params:cells.{cell.namespace}",
                "params:fine_tuning": f"params:fine_tuning.{cell.method}",
                "params:experiment": "params:experiment",
            },
        )

    return Pipeline(
        [
            *(
                instance(deephash_random_start, cell, {})
                for cell in cells(RANDOM_INITIALISATION, code_lengths=code_lengths)
            ),
            *(
                instance(
                    fine_tuning,
                    cell,
                    {
                        "trunk_weights": "trunk_weights",
                        "initial_hash_layer": f"{PRE_TRAINING}.b{cell.code_length}.hash_layer",
                    },
                )
                for cell in cells(*pre_trained, code_lengths=code_lengths)
            ),
            joining_node(cells(RANDOM_INITIALISATION, *pre_trained, code_lengths=code_lengths), "fine_tuning_history"),
        ]
    )
