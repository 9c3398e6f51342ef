"""Initialise the hash layer."""

from collections.abc import Sequence

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash.initialise import initialise_hash_layer
from deephash_pipeline.pipelines.grid import PRE_TRAINING
from deephash_pipeline.pipelines.shared.bundles import node, of_cell
from deephash_pipeline.pipelines.shared.fitting import encoding_node
from deephash_pipeline.pipelines.shared.inputs import CELL_RUN, TRAINING_FEATURES


def create_pipeline(grid: Sequence[Cell]) -> Pipeline:
    """Instantiate the template once for each code length of the grid.

    ::

        training_z, labels -> initialise -> <cell>.{hash_layer, encoder, history} -> encode -> <cell>.codes
    """
    inputs = (TRAINING_FEATURES, "params:hash_layer_init", CELL_RUN)
    initialise = node(initialise_hash_layer, inputs, ["hash_layer", "encoder", "history"], "initialise")
    template = Pipeline([initialise, encoding_node()])
    return Pipeline([of_cell(template, cell) for cell in grid if cell.method == PRE_TRAINING])
