"""Initialise the hash layer."""

from collections.abc import Sequence

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.pipelines.grid import PRE_TRAINING
from deephash_pipeline.pipelines.hash_layer_init.nodes import initialise_and_encode
from deephash_pipeline.pipelines.shared.bundles import node, of_cell
from deephash_pipeline.pipelines.shared.inputs import CELL_RUN, TRAINING_FEATURES
from deephash_pipeline.pipelines.shared.searching import Z_SETS


def create_pipeline(grid: Sequence[Cell]) -> Pipeline:
    """Instantiate the template once for each code length of the grid.

    ::

        z of the three sets, training labels -> initialise_and_encode -> <cell>.{hash_layer, encoder, history, codes}
    """
    inputs = (TRAINING_FEATURES, "params:hash_layer_init", CELL_RUN, Z_SETS)
    template = Pipeline([node(initialise_and_encode, inputs, ["hash_layer", "encoder", "history", "codes"])])
    return Pipeline([of_cell(template, cell) for cell in grid if cell.method == PRE_TRAINING])
