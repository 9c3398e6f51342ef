"""Beside the stages: what codes are compared with."""

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.pipelines.references.nodes import Searched, measure_pq, measure_z, quantise
from deephash_pipeline.pipelines.shared.inputs import Bundle, node
from deephash_pipeline.pipelines.shared.searching import LABEL_SETS

Z = Bundle(Searched, ("training_z", "validation_z"))


def create_pipeline() -> Pipeline:
    """Measure retrieval by z itself, and by what product quantisation keeps of it.

    ::

        z of three sets, labels -> measure_z -> z_reference
        training_z, validation_z -> quantise -> quantised_features; query_z, labels -> measure_pq -> pq_reference
    """
    return Pipeline(
        [
            node(measure_z, ["query_z", Z, LABEL_SETS, "params:protocol"], "z_reference", "measure_z"),
            Node(
                quantise,
                inputs=["training_z", "validation_z", "params:experiment"],
                outputs="quantised_features",
                name="quantise",
            ),
            node(
                measure_pq,
                ["query_z", "quantised_features", LABEL_SETS, "params:protocol"],
                "pq_reference",
                "measure_pq",
            ),
        ]
    )
