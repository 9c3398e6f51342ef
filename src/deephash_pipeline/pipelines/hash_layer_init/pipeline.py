"""Stage 5: initialise the hash layer."""

from collections.abc import Sequence

from kedro.pipeline import Pipeline

from deephash_pipeline.grid import PRE_TRAINING, cells
from deephash_pipeline.pipelines.hash_layer_init.nodes import initialise
from deephash_pipeline.pipelines.shared.encoding import encoding_node
from deephash_pipeline.pipelines.shared.histories import joining_node
from deephash_pipeline.pipelines.shared.inputs import CELL_RUN, TRAINING_FEATURES, node


def create_pipeline(code_lengths: Sequence[int]) -> Pipeline:
    """Instantiate the template once for each code length.

    ::

        training_z, labels -> initialise -> <cell>.{hash_layer, encoder, history} -> encode -> <cell>.codes
    """
    template = Pipeline(
        [
            node(
                initialise,
                [TRAINING_FEATURES, "params:hash_layer_init", CELL_RUN],
                ["hash_layer", "encoder", "history"],
                "initialise",
            ),
            encoding_node(),
        ]
    )
    grid = list(cells(PRE_TRAINING, code_lengths=code_lengths))
    instances = [
        Pipeline(
            template,
            namespace=cell.namespace,
            inputs={*TRAINING_FEATURES.datasets, "validation_z", "query_z"},
            parameters={
                "params:cell": f"params:cells.{cell.namespace}",
                "params:hash_layer_init": "params:hash_layer_init",
                "params:experiment": "params:experiment",
            },
        )
        for cell in grid
    ]
    return Pipeline([*instances, joining_node(grid, "hash_layer_init_history")])
