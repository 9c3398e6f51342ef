"""Warnings of a fine-tuning that has made codes worse, or all alike."""

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.hasher import ImageHasher

logger = logging.getLogger(__name__)

LOSS_OF_INDEPENDENT_CODES = 1.0
ALIKE = 0.9
"""If a larger share of images has one code, nothing was learned, or nearly all are of one class."""


def warn_of_true_loss(course: Sequence[float], run: Run) -> None:
    """Log a warning if the codes' loss has risen above that of independent codes, which is about 1.

    Args:
        course: loss of the signs of u after each epoch, see `ExponentiatedLoss`.
        run: the training.

    Example:
        >>> from deephash_pipeline.deephash import Experiment
        >>> run = Run(Experiment(benchmark="digits", network="lenet", seed=0), Cell(method="deephash", code_length=48))
        >>> warn_of_true_loss([0.9, 0.2], run)  # it has learned
    """
    if course[-1] > max(LOSS_OF_INDEPENDENT_CODES, course[0]):
        logger.warning(
            "%s: the codes are worse than independent ones, their true loss has risen to %.2f: lower "
            "`fine_tuning.%s.training.learning_rate`, or train the network better before it",
            *(run.name, course[-1], run.cell.method),
        )


def warn_if_collapsed(codes: NDArray[np.uint8], hasher: ImageHasher) -> None:
    """Log a warning if nearly all of the packed codes (n, bytes) are one.

    Example:
        >>> hasher, images = ImageHasher.pretrained("digits-48"), np.eye(28, dtype=np.uint8).reshape(1, 1, 28, 28)
        >>> warn_if_collapsed(hasher.encode(np.concatenate([images, 255 * images])), hasher)  # they differ
    """
    _, counts = np.unique(codes, axis=0, return_counts=True)
    if counts.max() > ALIKE * len(codes):
        cell = Cell(method=hasher.description.method, code_length=hasher.code_length)
        logger.warning(
            "%s: training has collapsed, %d of %d images have the same code; a smaller learning rate may help "
            "(`fine_tuning.%s.training.learning_rate`)",
            *(cell.namespace, counts.max(), len(codes), cell.method),
        )
