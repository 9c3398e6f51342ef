"""Losses by name: a loss is one module, and a line in each of the two lists here."""

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from deephash_pipeline.losses.cnnh import CNNH, CNNHParameters, CNNHPlus, CNNHPlusParameters
from deephash_pipeline.losses.csq import CSQ, CSQParameters
from deephash_pipeline.losses.dnnh import DNNH, DNNHParameters
from deephash_pipeline.losses.dpsh import DPSH, DPSHParameters
from deephash_pipeline.losses.exponentiated.formula import ExponentiatedLossParameters
from deephash_pipeline.losses.exponentiated.loss import ExponentiatedLoss
from deephash_pipeline.losses.greedy_hash import GreedyHash, GreedyHashParameters
from deephash_pipeline.losses.hashing_loss import HashingLoss
from deephash_pipeline.losses.hashnet import HashNet, HashNetParameters

LossParameters: TypeAlias = Annotated[
    ExponentiatedLossParameters
    | CNNHParameters
    | CNNHPlusParameters
    | DNNHParameters
    | DPSHParameters
    | HashNetParameters
    | GreedyHashParameters
    | CSQParameters,
    Field(discriminator="name"),
]

LOSSES: Mapping[str, type[HashingLoss]] = {
    "exponentiated": ExponentiatedLoss,
    "cnnh": CNNH,
    "cnnh_plus": CNNHPlus,
    "dnnh": DNNH,
    "dpsh": DPSH,
    "hashnet": HashNet,
    "greedy_hash": GreedyHash,
    "csq": CSQ,
}


def build_loss(parameters: LossParameters, code_length: int, labels: NDArray[np.int64], seed: int) -> HashingLoss:
    """Make the loss that `parameters.name` names.

    Args:
        parameters: its own.
        code_length: bits.
        labels: of the training set, int64 of shape (samples,), classes numbered from 0.
        seed: of all that is drawn.

    Raises:
        InputError: the loss cannot be made for this training set.
    """
    return LOSSES[parameters.name].for_training_set(parameters, code_length, labels, seed)
