"""Experiment: the parameters that all trainings share, and the name of each training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pandas as pd
import torch
from pydantic import Field, model_validator

from deephash_pipeline.common.cell import Cell, seed_of_replicate
from deephash_pipeline.common.devices import resolve_device
from deephash_pipeline.common.parameters import Parameters, flatten
from deephash_pipeline.networks import OWN_NETWORKS, Trunk, TrunkParameters, build_trunk, require_network, usual_input
from deephash_pipeline.networks.layers import Shape
from deephash_pipeline.training import CheckpointFolder, TrainingParameters, TrainingRun


class Experiment(Parameters):
    """The common parameters.

    Attributes:
        benchmark: name of the data, and of its folders and MLflow experiment.
        network: a table of the appendix, by its name in `deephash_pipeline.networks.NETWORKS`; or a classifier of
            `torchvision.models`, by its name there; or a model of timm, as ``timm/<name>``.
        trunk: options of a network of torchvision or timm.
        seed: seed from which every random draw derives; those of a cell's replicate from `seed_of_replicate`.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        effort: share of the configured epochs that every training makes, at least one: 0.1 for a quick look. Below 1
            learning rates are halved, for a short warm-up reaches the peak before the weights have settled.

    >>> quick = Experiment(benchmark="digits", network="lenet", seed=42, effort=0.1)
    >>> quick.training(TrainingParameters(epochs=30, batch_size=64, learning_rate=0.05)).epochs
    3
    """

    benchmark: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")
    network: str
    trunk: TrunkParameters = TrunkParameters()
    seed: int = Field(ge=0, lt=2**63)
    device: str = "auto"
    effort: float = Field(default=1.0, gt=0, le=1)

    @model_validator(mode="after")
    def _network_is_known(self) -> Self:
        require_network(self.network)
        if self.network in OWN_NETWORKS and self.trunk != TrunkParameters():
            raise ValueError(
                f"`trunk` is for networks of torchvision and timm, and `{self.network}` is none: leave it out"
            )
        return self

    def of_replicate(self, replicate: int) -> "Experiment":
        """Give the experiment that a replicate is trained by."""
        return self.model_copy(update={"seed": seed_of_replicate(self.seed, replicate)})

    def trunk_for(self, image_shape: Shape) -> Trunk:
        """Build the trunk for images of shape (channels, height, width), with weights still to be drawn or loaded."""
        return build_trunk(self.network, image_shape, self.trunk)

    @property
    def usual_statistics(self) -> dict[str, list[float]] | None:
        """Normalisation that the network's weights were learned with; None for that of the training images."""
        return usual_input(self.network).statistics if self.trunk.learned_elsewhere else None

    @property
    def torch_device(self) -> torch.device:
        """Where it computes.

        Raises:
            InputError: there is no such device.
        """
        return resolve_device(self.device)

    def training(self, parameters: TrainingParameters) -> TrainingParameters:
        """Return the parameters of a training with the epochs that are made of those configured."""
        if self.effort == 1:
            return parameters
        epochs = max(1, round(self.effort * parameters.epochs))
        return parameters.model_copy(update={"epochs": epochs, "learning_rate": parameters.learning_rate / 2})


class StageParameters(Parameters):
    """What the parameters of every stage that trains have.

    Example:
        >>> StageParameters(training=TrainingParameters(epochs=3, batch_size=8, learning_rate=0.1)).training.epochs
        3
    """

    training: TrainingParameters


@dataclass(frozen=True)
class StageRun:
    """One training of an experiment.

    Attributes:
        experiment: configuration that it shares with the others.
    """

    experiment: Experiment

    @property
    def name(self) -> str:
        """In progress and errors."""
        raise NotImplementedError

    @property
    def checkpoints(self) -> CheckpointFolder | None:
        """Folder where it saves and looks for checkpoints; None for nowhere."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        """Where it computes."""
        return self.experiment.torch_device

    def configuration(self, parameters: StageParameters) -> dict[str, Any]:
        """What makes a training what it is, as dotted names and values, to be compared with that of a checkpoint.

        Example:
            >>> run = ClassifierRun(Experiment(benchmark="digits", network="lenet", seed=42, effort=0.1))
            >>> parameters = StageParameters(training=TrainingParameters(epochs=30, batch_size=64, learning_rate=0.1))
            >>> configuration = run.configuration(parameters)
            >>> configuration["network"], configuration["training.epochs"], configuration["training.learning_rate"]
            ('lenet', 3, 0.05)
        """
        made = parameters.model_copy(update={"training": self.experiment.training(parameters.training)})
        described = made.model_dump(mode="json")
        if self.experiment.network not in OWN_NETWORKS:
            weights = self.experiment.trunk.weights
            described["trunk"] = self.experiment.trunk.of_hasher() | ({"weights": weights} if weights else {})
        return {"network": self.experiment.network, **flatten("", described)}

    def engine_run(
        self, parameters: StageParameters, seed: int, after_epoch: Callable[[], dict[str, float]] | None = None
    ) -> TrainingRun:
        """Describe it to the training engine.

        Example:
            >>> experiment = Experiment(benchmark="digits", network="lenet", seed=42)
            >>> parameters = StageParameters(training=TrainingParameters(epochs=30, batch_size=64, learning_rate=0.05))
            >>> Run(experiment, Cell(method="deephash", code_length=48)).engine_run(parameters, seed=7).name
            'deephash.b48'
        """
        configuration = self.configuration(parameters)
        return TrainingRun(self.name, seed, self.device, after_epoch, self.checkpoints, configuration)

    def history(self, rows: Any, stage: str) -> pd.DataFrame:
        """Make a table of what a training has told of its epochs, each row with what was trained."""
        return pd.DataFrame(rows).assign(method=None, code_length=None, stage=stage)


@dataclass(frozen=True)
class ClassifierRun(StageRun):
    """The training of the classifier that all cells start from.

    Attributes:
        checkpoints: folder where it saves and looks for checkpoints; None for nowhere.

    Example:
        >>> run = ClassifierRun(Experiment(benchmark="digits", network="lenet", seed=42, device="cpu"))
        >>> run.name, run.device
        ('cnn_pretraining', device(type='cpu'))
    """

    checkpoints: CheckpointFolder | None = None
    name: ClassVar[str] = "cnn_pretraining"

    @classmethod
    def of_replicate(cls, experiment: Experiment, cell: Cell, checkpoints: CheckpointFolder | None = None) -> Self:
        """Make the run of the classifier that the cells of `cell`'s replicate start from, by its seed.

        Example:
            >>> cell = Cell(method="deephash", code_length=48, replicate=3)
            >>> experiment = Experiment(benchmark="digits", network="lenet", seed=42)
            >>> ClassifierRun.of_replicate(experiment, cell).experiment.seed
            44
        """
        return cls(experiment.of_replicate(cell.replicate), checkpoints)


@dataclass(frozen=True)
class Run(StageRun):
    """The training of a cell.

    Attributes:
        cell: the method and the code length that it is for.
        checkpoints: folder where it saves and looks for checkpoints; None for nowhere.

    >>> experiment = Experiment(benchmark="digits", network="lenet", seed=42)
    >>> Run(experiment, Cell(method="deephash", code_length=48)).name, ClassifierRun(experiment).name
    ('deephash.b48', 'cnn_pretraining')
    """

    cell: Cell
    checkpoints: CheckpointFolder | None = None

    @classmethod
    def of_replicate(cls, experiment: Experiment, cell: Cell, checkpoints: CheckpointFolder | None = None) -> Self:
        """Make the run of a cell, by the seed of its replicate.

        Example:
            >>> cell = Cell(method="deephash", code_length=48, replicate=2)
            >>> experiment = Experiment(benchmark="digits", network="lenet", seed=42)
            >>> Run.of_replicate(experiment, cell).experiment.seed
            43
        """
        return cls(experiment.of_replicate(cell.replicate), cell, checkpoints)

    def history(self, rows: Any, stage: str) -> pd.DataFrame:
        """Name the cell too."""
        return super().history(rows, stage).assign(method=self.cell.method, code_length=self.cell.code_length)

    @property
    def name(self) -> str:
        """Name of the cell, in progress and errors."""
        return self.cell.namespace

    @property
    def code_length(self) -> int:
        """Bits of the codes."""
        return self.cell.bits
