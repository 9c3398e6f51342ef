"""Beside the stages: an index of the database, for any cell."""

from kedro.pipeline import Pipeline

from deephash_pipeline.deephash.training_set import LabelledImages
from deephash_pipeline.pipelines.grid import OWN_TRUNK, cells
from deephash_pipeline.pipelines.indexing.nodes import IndexedImages, assemble_and_join_codes, join_codes
from deephash_pipeline.pipelines.shared.bundles import Bundle, node, of_cell
from deephash_pipeline.pipelines.shared.inputs import TRAINING_SET_FILES, TRIAL_RUN

DATABASE_IMAGES = Bundle(LabelledImages, ("training_images", "training_labels"))
INDEXED_DATABASE = Bundle(IndexedImages, ("training_ids", TRAINING_SET_FILES))


def create_pipeline() -> Pipeline:
    """Instantiate one template for cells with a trunk of their own, and one for those on the shared trunk.

    ::

        <cell>.hasher, <cell>.codes, images, ids, labels -> make_index -> <cell>.index
        <cell>.encoder, trunk_weights, <cell>.codes, images, ids, labels -> make_index -> <cell>.index
    """
    database = ("training_ids", DATABASE_IMAGES, "class_names")
    of_hasher = Pipeline([node(join_codes, ["hasher", "codes", *database], "index", "make_index")])
    inputs = ("encoder", "trunk_weights", "codes", INDEXED_DATABASE, TRIAL_RUN)
    of_encoder = Pipeline([node(assemble_and_join_codes, inputs, "index", "make_index")])
    return Pipeline([of_cell(of_hasher if cell.method in OWN_TRUNK else of_encoder, cell) for cell in cells()])
