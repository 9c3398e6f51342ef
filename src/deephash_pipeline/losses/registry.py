"""Losses by name: a loss is one module, and one line in the table here."""

import operator
from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from deephash_pipeline.common.parameters import Parameters, parameters_model
from deephash_pipeline.common.registry import Registry
from deephash_pipeline.losses.hashing_loss import HashingLoss, Need
from deephash_pipeline.losses.labels import is_multi_hot, number_of_classes, require_one_label

LOSSES: Registry[type[HashingLoss]] = Registry(
    {
        "exponentiated": ".exponentiated.loss:ExponentiatedLoss",
        "cnnh": ".cnnh:CNNH",
        "cnnh_plus": ".cnnh:CNNHPlus",
        "dnnh": ".dnnh:DNNH",
        "dpsh": ".dpsh:DPSH",
        "hashnet": ".hashnet:HashNet",
        "greedy_hash": ".greedy_hash:GreedyHash",
        "csq": ".csq:CSQ",
        "orthohash": ".orthohash:OrthoHash",
        "dtsh": ".dtsh:DTSH",
        "dch": ".dch:DCH",
        "dpn": ".dpn:DPN",
        "dsh": ".dsh:DSH",
        "dhn": ".dhn:DHN",
        "idhn": ".idhn:IDHN",
        "mihash": ".mihash:MIHash",
        "dsdh": ".dsdh:DSDH",
        "adsh": ".adsh:ADSH",
        "psldh": ".psldh:PSLDH",
        "mdsh": ".mdsh:MDSH",
        "lcdsh": ".lcdsh:LCDSH",
        "dbdh": ".dbdh:DBDH",
        "dshsd": ".dshsd:DSHSD",
        "dfh": ".dfh:DFH",
        "bihalf": ".bihalf:BiHalf",
        "greedy_hash_unsupervised": ".greedy_hash:GreedyHashUnsupervised",
        "cibhash": ".cibhash:CIBHash",
    },
    __package__,
)


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
        parameters: parameters of the loss, a model of `LOSS_PARAMETERS`.
        code_length: bits.
        labels: labels of the training set: int64 of shape (samples,), classes numbered from 0; or uint8 (samples,
            classes), 1 where an image has the label.
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
