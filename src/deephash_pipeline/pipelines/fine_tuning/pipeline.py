"""Train all layers on a hashing loss."""

from collections.abc import Sequence

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.pipelines.fine_tuning.nodes import OtherSets, PreTrainedStart, fine_tune_and_encode
from deephash_pipeline.pipelines.grid import OWN_TRUNK, RANDOM_START
from deephash_pipeline.pipelines.shared.bundles import Bundle, node
from deephash_pipeline.pipelines.shared.inputs import CELL_RUN, PRE_TRAINED, TRAINING_SET_FILES, of_trained_cell
from deephash_pipeline.pipelines.shared.searching import Z_SETS

OTHER_IMAGES = Bundle(OtherSets, ("query_images", "validation_images"))
START = Bundle(PreTrainedStart, (PRE_TRAINED, Z_SETS, "chosen_by_trials"))


def create_pipeline(grid: Sequence[Cell]) -> Pipeline:
    """Instantiate one template for the grid's methods that start from pre-training, and one for the random start.

    ::

        images, labels, z, {trunk, softmax}_weights, deephash_pretrained.b<bits>.hash_layer -> fine_tune_and_encode
            -> <cell>.{hasher, history, codes}
    """
    inputs, made = (TRAINING_SET_FILES, "params:fine_tuning", CELL_RUN, OTHER_IMAGES), ["hasher", "history", "codes"]
    from_pre_training = Pipeline([node(fine_tune_and_encode, [*inputs, START], made)])
    from_random_weights = Pipeline([node(fine_tune_and_encode, inputs, made, "train_and_encode")])
    tuned = sorted((cell for cell in grid if cell.method in OWN_TRUNK), key=lambda cell: OWN_TRUNK.index(cell.method))
    return Pipeline(
        [
            of_trained_cell(from_random_weights if cell.method == RANDOM_START else from_pre_training, cell)
            for cell in tuned
        ]
    )
