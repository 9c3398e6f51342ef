"""Stage 5: initialise the hash layer."""

from collections.abc import Sequence

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.grid import PRE_TRAINING, cells
from deephash_pipeline.pipelines.encoding import encoding_node
from deephash_pipeline.pipelines.hash_layer_init.nodes import initialise_hash_layer
from deephash_pipeline.pipelines.histories import joining_node


def create_pipeline(code_lengths: Sequence[int]) -> Pipeline:
    """Instantiate the template once for each code length.

    ::

        training_z, labels -> initialise -> <cell>.{hash_layer, encoder, history} -> encode -> <cell>.codes
    """
    template = Pipeline(
        [
            Node(
                initialise_hash_layer,
                inputs=[
                    "training_z",
                    "training_labels",
                    "class_names",
                    "params:cell",
                    "params:hash_layer_init",
                    "params:experiment",
                    "checkpoints",
                ],
                outputs=["hash_layer", "encoder", "history"],
                name="initialise",
            ),
            encoding_node(),
        ]
    )
    grid = list(cells(PRE_TRAINING, code_lengths=code_lengths))
    instances = [
        Pipeline(
            template,
            namespace=cell.namespace,
            inputs={"training_z", "training_labels", "class_names", "validation_z", "query_z"},
            parameters={
                "params:cell": f"params:cells.{cell.namespace}",
                "params:hash_layer_init": "params:hash_layer_init",
                "params:experiment": "params:experiment",
            },
        )
        for cell in grid
    ]
    return Pipeline([*instances, joining_node(grid, "hash_layer_init_history")])
