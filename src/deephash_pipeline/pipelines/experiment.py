"""What all stages of a run share."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from deephash_pipeline.networks import NETWORKS


class ExperimentParameters(BaseModel):
    """The run's common parameters.

    Attributes:
        benchmark: name of the data, and of its folders and MLflow experiment.
        network: a table of the appendix, by its name in `deephash_pipeline.networks.NETWORKS`.
        seed: every random draw derives from it.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    benchmark: str
    network: str
    seed: int = Field(ge=0)
    device: str = "auto"

    @model_validator(mode="after")
    def _network_is_known(self) -> Self:
        if self.network not in NETWORKS:
            raise ValueError(f"unknown network `{self.network}`: choose one of {', '.join(sorted(NETWORKS))}")
        return self
