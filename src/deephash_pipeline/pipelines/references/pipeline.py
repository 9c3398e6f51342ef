"""Beside the stages: what codes are compared with."""

from kedro.pipeline import Pipeline

from deephash_pipeline.pipelines.references.nodes import measure_pq, measure_z
from deephash_pipeline.pipelines.shared.bundles import node
from deephash_pipeline.pipelines.shared.searching import LABEL_SETS, Z_SETS


def create_pipeline() -> Pipeline:
    """Measure retrieval by z itself, and by what product quantisation keeps of it.

    ::

        z and labels of three sets -> measure_z -> z_reference
        z and labels of three sets -> measure_pq -> pq_reference
    """
    inputs = (Z_SETS, LABEL_SETS, "params:protocol")
    return Pipeline(
        [node(measure_z, inputs, "z_reference"), node(measure_pq, [*inputs, "params:experiment"], "pq_reference")]
    )
