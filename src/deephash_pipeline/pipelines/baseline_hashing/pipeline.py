"""Hash functions on the network's features."""

from collections.abc import Sequence

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.pipelines.baseline_hashing.nodes import make_classifier_baseline
from deephash_pipeline.pipelines.grid import BASELINES, CLASSIFIER_BASELINE
from deephash_pipeline.pipelines.shared.bundles import node, of_cell
from deephash_pipeline.pipelines.shared.fitting import encoding_node, fitting_node


def create_pipeline(grid: Sequence[Cell]) -> Pipeline:
    """Instantiate the template once for each cell of the baselines in the grid, and once for the classifier.

    ::

        training_z, labels -> fit -> <cell>.encoder -> encode (z of three sets) -> <cell>.codes
    """
    fit = Pipeline([fitting_node(), encoding_node()])
    make = node(make_classifier_baseline, ["softmax_weights", "training_labels"], "encoder", "make_encoder")
    classify = Pipeline([make, encoding_node()])
    return Pipeline(
        [
            of_cell(classify if cell.method == CLASSIFIER_BASELINE.method else fit, cell)
            for cell in grid
            if cell.method in (*BASELINES, CLASSIFIER_BASELINE.method)
        ]
    )
