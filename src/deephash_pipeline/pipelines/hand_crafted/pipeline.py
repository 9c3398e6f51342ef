"""Hash functions on hand-crafted features, beside those on the network's; not part of the full pipeline."""

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.pipelines.grid import NAMES_OF_PAPER, PRE_TRAINING, compared_cells, on_descriptor
from deephash_pipeline.pipelines.hand_crafted.nodes import initialise_and_encode, tabulate_features
from deephash_pipeline.pipelines.shared.bundles import node, of_cell
from deephash_pipeline.pipelines.shared.fitting import fitting_node
from deephash_pipeline.pipelines.shared.inputs import CELL_RUN, TRAINING_FEATURES
from deephash_pipeline.pipelines.shared.measuring import measuring_node
from deephash_pipeline.pipelines.shared.searching import Z_SETS


def create_pipeline() -> Pipeline:
    """Instantiate the templates once for each cell of the paper's table of hand-crafted features.

    ::

        descriptors of the three sets, training labels -> fit or initialise, and encode -> <cell>.{encoder, codes}
        codes, labels -> measure -> <cell>.metrics, <cell>.curves
        <cell>.metrics, evaluated_cells -> tabulate_features -> hand_crafted_table
    """
    grid = list(compared_cells())
    metrics = [f"{on_descriptor(cell).namespace}.metrics" for cell in grid]
    inputs = ["evaluated_cells", "params:hand_crafted", "params:experiment", NAMES_OF_PAPER, *metrics]
    table = node(tabulate_features, inputs, "hand_crafted_table")
    return Pipeline([*map(_on_descriptor, grid), table])


def _on_descriptor(cell: Cell) -> Pipeline:
    """From the descriptor, where the template has z, to the figures."""
    inputs = (TRAINING_FEATURES, "params:hash_layer_init", CELL_RUN, Z_SETS)
    initialise = node(initialise_and_encode, inputs, ["encoder", "history", "codes"])
    learn = initialise if cell.method == PRE_TRAINING else fitting_node("params:cell_on_z")
    return of_cell(
        Pipeline([learn, measuring_node()]),
        on_descriptor(cell),
        {f"{split}_z": f"{split}_descriptor" for split in ("training", "validation", "query")},
        # Each method has the parameters that it has on z, and the same seed.
        {"params:cell_on_z": f"params:{cell.parameter}"},
    )
