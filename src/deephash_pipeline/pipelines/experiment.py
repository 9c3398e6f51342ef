"""What all stages of a run share."""

from typing import Any, Literal, Self

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from deephash_pipeline.networks import NETWORKS


class ExperimentParameters(BaseModel):
    """The run's common parameters.

    Attributes:
        benchmark: name of the data, and of its folders and MLflow experiment.
        network: a table of the appendix, by its name in `deephash_pipeline.networks.NETWORKS`.
        seed: every random draw derives from it.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        devices: how many of them share the training of a network with a trunk; ``auto`` takes all CUDA devices there
            are. On the CPU, so many processes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: str
    network: str
    seed: int = Field(ge=0)
    device: str = "auto"
    devices: PositiveInt | Literal["auto"] = 1

    @model_validator(mode="after")
    def _network_is_known(self) -> Self:
        if self.network not in NETWORKS:
            raise ValueError(f"unknown network `{self.network}`: choose one of {', '.join(sorted(NETWORKS))}")
        return self


def flat_configuration(experiment: ExperimentParameters, parameters: BaseModel) -> dict[str, Any]:
    """Give what makes a training what it is as dotted names and values, to be compared with that of a checkpoint."""
    named = pd.json_normalize(parameters.model_dump(mode="json")).to_dict("records")[0]
    return {"network": experiment.network, **{str(name): value for name, value in named.items()}}
