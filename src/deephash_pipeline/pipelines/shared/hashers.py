"""The image hasher of any cell of a finished run."""

from typing import Any

from kedro.io import CatalogProtocol
from torch import Tensor

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.deephash.training_set import TrainingSet
from deephash_pipeline.hashing import Encoder

TRUNK_WEIGHTS = "trunk_weights"
OF_TRAINING_SET = ("training_images", "training_labels", "pixel_statistics", "class_names")
PARTS_OF_HASHERS = (TRUNK_WEIGHTS, *OF_TRAINING_SET)
"""What every hasher of a cell on the shared trunk is put together from, beside its encoder."""


def hasher_of_cell(catalog: CatalogProtocol[str, Any], cell: Cell) -> ImageHasher:
    """Load the hasher of a cell with a trunk of its own; put that of another one together from trunk and encoder.

    Raises:
        kedro.io.DatasetError: the cell has not been run.
    """
    stored = f"{cell.namespace}.hasher"
    if catalog.exists(stored):
        hasher: ImageHasher = catalog.load(stored)
        return hasher
    encoder, weights = catalog.load(f"{cell.namespace}.encoder"), catalog.load(TRUNK_WEIGHTS)
    training_set = TrainingSet(*map(catalog.load, OF_TRAINING_SET))
    return assembled(encoder, weights, training_set, Run(catalog.load("params:experiment"), cell))


def assembled(encoder: Encoder, weights: dict[str, Tensor], training_set: TrainingSet, run: Run) -> ImageHasher:
    """Put the hasher of a cell together from its encoder and the weights of the shared trunk."""
    trunk = run.experiment.trunk_for(training_set.images.shape[1:])
    trunk.load_state_dict(weights)
    return ImageHasher.assemble(trunk, encoder, training_set, run)
