"""Losses by name: a loss is one module, and one line in the table here."""

import operator
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from deephash_pipeline.losses.adsh import ADSH
from deephash_pipeline.losses.bihalf import BiHalf
from deephash_pipeline.losses.cibhash import CIBHash
from deephash_pipeline.losses.cnnh import CNNH, CNNHPlus
from deephash_pipeline.losses.csq import CSQ
from deephash_pipeline.losses.dbdh import DBDH
from deephash_pipeline.losses.dch import DCH
from deephash_pipeline.losses.dfh import DFH
from deephash_pipeline.losses.dhn import DHN
from deephash_pipeline.losses.dnnh import DNNH
from deephash_pipeline.losses.dpn import DPN
from deephash_pipeline.losses.dpsh import DPSH
from deephash_pipeline.losses.dsdh import DSDH
from deephash_pipeline.losses.dsh import DSH
from deephash_pipeline.losses.dshsd import DSHSD
from deephash_pipeline.losses.dtsh import DTSH
from deephash_pipeline.losses.exponentiated import ExponentiatedLoss
from deephash_pipeline.losses.greedy_hash import GreedyHash
from deephash_pipeline.losses.greedy_hash_unsupervised import GreedyHashUnsupervised
from deephash_pipeline.losses.hashing_loss import HashingLoss, Need, is_multi_hot, number_of_classes, require_one_label
from deephash_pipeline.losses.hashnet import HashNet
from deephash_pipeline.losses.idhn import IDHN
from deephash_pipeline.losses.lcdsh import LCDSH
from deephash_pipeline.losses.mdsh import MDSH
from deephash_pipeline.losses.mihash import MIHash
from deephash_pipeline.losses.orthohash import OrthoHash
from deephash_pipeline.losses.psldh import PSLDH
from deephash_pipeline.parameters import Parameters, parameters_model

LOSSES: Mapping[str, type[HashingLoss]] = {
    "exponentiated": ExponentiatedLoss,
    "cnnh": CNNH,
    "cnnh_plus": CNNHPlus,
    "dnnh": DNNH,
    "dpsh": DPSH,
    "hashnet": HashNet,
    "greedy_hash": GreedyHash,
    "csq": CSQ,
    "orthohash": OrthoHash,
    "dtsh": DTSH,
    "dch": DCH,
    "dpn": DPN,
    "dsh": DSH,
    "dhn": DHN,
    "idhn": IDHN,
    "mihash": MIHash,
    "dsdh": DSDH,
    "adsh": ADSH,
    "psldh": PSLDH,
    "mdsh": MDSH,
    "lcdsh": LCDSH,
    "dbdh": DBDH,
    "dshsd": DSHSD,
    "dfh": DFH,
    "bihalf": BiHalf,
    "greedy_hash_unsupervised": GreedyHashUnsupervised,
    "cibhash": CIBHash,
}


class _NamedLoss(Parameters):
    name: str = ""


LOSS_PARAMETERS: Mapping[str, type[_NamedLoss]] = {
    key: parameters_model(loss, skip=loss.needs, base=_NamedLoss, name=(Literal[key], key))
    for key, loss in LOSSES.items()
}
"""Model of each loss's block of YAML, ``{name: dpsh, quantisation_weight: 0.1}``: keywords of its constructor."""

if TYPE_CHECKING:
    LossParameters: TypeAlias = _NamedLoss
else:
    LossParameters = Annotated[reduce(operator.or_, LOSS_PARAMETERS.values()), Field(discriminator="name")]


def build_loss(
    parameters: LossParameters, code_length: int, labels: NDArray[np.int64] | NDArray[np.uint8], random_state: int
) -> HashingLoss:
    """Make the loss that `parameters.name` names.

    Args:
        parameters: its own, a model of `LOSS_PARAMETERS`.
        code_length: bits.
        labels: of the training set: int64 of shape (samples,), classes numbered from 0; or uint8 (samples, classes), 1
            where an image has the label.
        random_state: seed of all that is drawn.

    Raises:
        InputError: the loss cannot be made for this training set, such as one that needs one label an image.

    Example:
        >>> parameters = LOSS_PARAMETERS["csq"](quantisation_weight=0.1)
        >>> build_loss(parameters, 12, np.array([0, 1, 2, 1]), random_state=0).centres.shape
        torch.Size([3, 12])
    """
    loss = LOSSES[parameters.name]
    if is_multi_hot(labels):
        require_one_label(loss.several_labels, parameters.name)
    supplied: dict[Need, object] = {
        "code_length": code_length,
        "classes": number_of_classes(labels),
        "labels": labels,
        "random_state": random_state,
    }
    return loss(**{need: supplied[need] for need in loss.needs}, **parameters.model_dump(exclude={"name"}))
