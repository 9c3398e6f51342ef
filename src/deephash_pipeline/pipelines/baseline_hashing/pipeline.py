"""Hash functions on the network's features."""

from collections.abc import Sequence

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.pipelines.baseline_hashing.nodes import hash_by_classifier
from deephash_pipeline.pipelines.grid import BASELINES, CLASSIFIER_BASELINE
from deephash_pipeline.pipelines.shared.bundles import node, of_cell
from deephash_pipeline.pipelines.shared.fitting import fitting_node
from deephash_pipeline.pipelines.shared.searching import Z_SETS


def create_pipeline(grid: Sequence[Cell]) -> Pipeline:
    """Instantiate the template once for each cell of the baselines in the grid, and once for the classifier.

    ::

        z of the three sets, training labels -> fit_and_encode -> <cell>.{encoder, codes}
    """
    fit = Pipeline([fitting_node()])
    inputs = ("softmax_weights", "training_labels", Z_SETS)
    classify = Pipeline([node(hash_by_classifier, inputs, ["encoder", "codes"])])
    return Pipeline(
        [
            of_cell(classify if cell.method == CLASSIFIER_BASELINE.method else fit, cell)
            for cell in grid
            if cell.method in (*BASELINES, CLASSIFIER_BASELINE.method)
        ]
    )
