"""Train all layers on a hashing loss."""

from collections.abc import Sequence

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash.fine_tune import fine_tune
from deephash_pipeline.pipelines.fine_tuning.nodes import encode_images
from deephash_pipeline.pipelines.grid import OWN_TRUNK, RANDOM_START
from deephash_pipeline.pipelines.shared.bundles import Bundle, node
from deephash_pipeline.pipelines.shared.inputs import CELL_RUN, PRE_TRAINED, TRAINING_SET, of_trained_cell
from deephash_pipeline.pipelines.shared.searching import Z_SETS, Sets

IMAGES = Bundle(Sets, ("query_images", "training_images", "validation_images"))


def create_pipeline(grid: Sequence[Cell]) -> Pipeline:
    """Instantiate one template for the grid's methods that start from pre-training, and one for the random start.

    ::

        images, labels, z, {trunk, softmax}_weights, deephash_pretrained.b<bits>.hash_layer -> fine_tune
            -> <cell>.{hasher, history}
        <cell>.hasher, images, z -> encode -> <cell>.codes
    """
    inputs = (TRAINING_SET, "params:fine_tuning", CELL_RUN)
    encoded = ("hasher", "params:experiment", IMAGES)
    from_pre_training = Pipeline(
        [
            node(fine_tune, [*inputs, PRE_TRAINED], ["hasher", "history"], "fine_tune"),
            node(encode_images, [*encoded, Z_SETS], "codes", "encode"),
        ]
    )
    from_random_weights = Pipeline(
        [node(fine_tune, inputs, ["hasher", "history"], "train"), node(encode_images, encoded, "codes", "encode")]
    )
    tuned = sorted((cell for cell in grid if cell.method in OWN_TRUNK), key=lambda cell: OWN_TRUNK.index(cell.method))
    return Pipeline(
        [
            of_trained_cell(from_random_weights if cell.method == RANDOM_START else from_pre_training, cell)
            for cell in tuned
        ]
    )
