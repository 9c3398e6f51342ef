"""The training engine: knows a network, an objective and a supply of inputs by their interfaces only."""

from deephash_pipeline.common.devices import resolve_device
from deephash_pipeline.training.gradients import FollowsProgress, HasMetrics, Objective, TrunkAndHead
from deephash_pipeline.training.inference import outputs_in_blocks
from deephash_pipeline.training.inputs import ArrayInputs, Inputs, LabelledInputs
from deephash_pipeline.training.loop import TrainingDiverged, train
from deephash_pipeline.training.objectives import BinaryCrossEntropy, CrossEntropy, classification_objective
from deephash_pipeline.training.parameters import TrainingParameters, TrainingRun
from deephash_pipeline.training.resuming.checkpoint import CheckpointFolder
from deephash_pipeline.training.resuming.interruption import (
    NoFurtherEpoch,
    StopRequest,
    TrainingInterrupted,
    stop_requests,
)
from deephash_pipeline.training.resuming.state import History
from deephash_pipeline.training.sampling import first_batch

__all__ = [
    "ArrayInputs",
    "BinaryCrossEntropy",
    "CheckpointFolder",
    "CrossEntropy",
    "FollowsProgress",
    "HasMetrics",
    "History",
    "Inputs",
    "LabelledInputs",
    "NoFurtherEpoch",
    "Objective",
    "StopRequest",
    "TrainingDiverged",
    "TrainingInterrupted",
    "TrainingParameters",
    "TrainingRun",
    "TrunkAndHead",
    "classification_objective",
    "first_batch",
    "outputs_in_blocks",
    "resolve_device",
    "stop_requests",
    "train",
]
