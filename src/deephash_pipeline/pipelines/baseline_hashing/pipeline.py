"""Stage 4: hash functions on the network's features."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.grid import BASELINES, YARDSTICK, cells

from .nodes import encode_z, fit_hash_function, make_yardstick

CODES = ["database_codes", "validation_codes", "query_codes"]


def create_pipeline() -> Pipeline:
    """Instantiate the template once for each cell of the baselines, and once for the yardstick.

    ::

        training_z, labels -> fit -> <cell>.encoder -> encode (training_z, validation_z, query_z) -> <cell>.*_codes
    """
    encode = encoding_template()
    template = Pipeline(
        [
            Node(
                fit_hash_function,
                inputs=["training_z", "training_labels", "params:cell", "params:baseline_hashing", "params:experiment"],
                outputs="encoder",
                name="fit",
            ),
            *encode.nodes,
        ]
    )
    instances = [
        Pipeline(
            template,
            namespace=cell.namespace,
            inputs={"training_z", "training_labels", "validation_z", "query_z"},
            parameters={
                "params:cell": f"params:cells.{cell.namespace}",
                "params:baseline_hashing": "params:baseline_hashing",
                "params:experiment": "params:experiment",
            },
        )
        for cell in cells(*BASELINES)
    ]
    yardstick = Pipeline(
        [Node(make_yardstick, inputs="softmax_weights", outputs="encoder", name="make_encoder"), *encode.nodes],
        namespace=YARDSTICK.namespace,
        inputs={"softmax_weights", "training_z", "validation_z", "query_z"},
    )
    return Pipeline([*instances, yardstick])


def encoding_template() -> Pipeline:
    """Encoder, z of three sets -> codes of three sets."""
    return Pipeline(
        [Node(encode_z, inputs=["encoder", "training_z", "validation_z", "query_z"], outputs=CODES, name="encode")]
    )
