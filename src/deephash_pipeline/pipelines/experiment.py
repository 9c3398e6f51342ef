"""What all stages of a run share."""

from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from deephash_pipeline.networks import NETWORKS, Trunk, TrunkParameters, build_trunk, require_network


class ExperimentParameters(BaseModel):
    """The run's common parameters.

    Attributes:
        benchmark: name of the data, and of its folders and MLflow experiment.
        network: a table of the appendix, by its name in `deephash_pipeline.networks.NETWORKS`; or a classifier of
            `torchvision.models`, by its name there.
        trunk: for a network of torchvision.
        seed: every random draw derives from it.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        devices: how many of them share the training of a network with a trunk; ``auto`` takes all CUDA devices there
            are. On the CPU, so many processes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: str
    network: str
    trunk: TrunkParameters = TrunkParameters()
    seed: int = Field(ge=0)
    device: str = "auto"
    devices: PositiveInt | Literal["auto"] = 1

    @model_validator(mode="after")
    def _network_is_known(self) -> Self:
        require_network(self.network)
        if self.network in NETWORKS and self.trunk != TrunkParameters():
            raise ValueError(f"`trunk` is for networks of torchvision, and `{self.network}` is none: leave it out")
        return self


def trunk_for(images: NDArray[np.uint8], experiment: ExperimentParameters) -> Trunk:
    """Build the trunk for images of shape (n, channels, height, width), with weights still to be drawn or loaded."""
    return build_trunk(experiment.network, images.shape[1:], experiment.trunk)


def flat_configuration(experiment: ExperimentParameters, parameters: BaseModel) -> dict[str, Any]:
    """Give what makes a training what it is as dotted names and values, to be compared with that of a checkpoint.

    What was not there when earlier checkpoints were made is left out where it changes nothing, so that they fit.
    """
    described = parameters.model_dump(mode="json")
    if experiment.network not in NETWORKS:
        described["trunk"] = experiment.trunk.model_dump(mode="json")
    named = pd.json_normalize(described).to_dict("records")[0]
    if named.get("augmentation.ten_crop") is False:
        del named["augmentation.ten_crop"]
    return {"network": experiment.network, **{str(name): value for name, value in named.items()}}
