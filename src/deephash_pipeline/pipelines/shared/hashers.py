"""The image hasher of any cell of a finished run."""

from typing import Any

from kedro.io import CatalogProtocol
from torch import Tensor

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.deephash.training_set import TrainingSet
from deephash_pipeline.hashing import Encoder
from deephash_pipeline.pipelines.grid import OWN_TRUNK
from deephash_pipeline.pipelines.shared.inputs import OF_TRAINING_SET

TRUNK_WEIGHTS = "trunk_weights"


def parts_of_hasher(cell: Cell) -> list[str]:
    """Name what the hasher of a cell is put together from; a cell with a trunk of its own has all in one."""
    if cell.method in OWN_TRUNK:
        return [f"{cell.namespace}.hasher"]
    return [f"{cell.namespace}.encoder", TRUNK_WEIGHTS, *OF_TRAINING_SET]


def hasher_of_cell(catalog: CatalogProtocol[str, Any], cell: Cell) -> ImageHasher:
    """Load the hasher of a cell with a trunk of its own; put that of another one together from trunk and encoder.

    Raises:
        kedro.io.DatasetError: the cell has not been run.
    """
    own, *others = map(catalog.load, parts_of_hasher(cell))
    if not others:
        hasher: ImageHasher = own
        return hasher
    weights, *of_training_set = others
    return assembled(own, weights, TrainingSet(*of_training_set), Run(catalog.load("params:experiment"), cell))


def assembled(encoder: Encoder, weights: dict[str, Tensor], training_set: TrainingSet, run: Run) -> ImageHasher:
    """Put the hasher of a cell together from its encoder and the weights of the shared trunk."""
    trunk = run.experiment.trunk_for(training_set.images.shape[1:])
    trunk.load_state_dict(weights)
    return ImageHasher.assemble(trunk, encoder, training_set, run)
