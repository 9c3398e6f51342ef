"""The training engine: knows a network, an objective and a supply of inputs by their interfaces only."""

from deephash_pipeline.devices import resolve_device, resolve_devices
from deephash_pipeline.training.distributed.launch import train_on
from deephash_pipeline.training.gradients import FollowsProgress, HasMetrics, Objective, TrunkAndHead
from deephash_pipeline.training.inference import outputs_in_blocks
from deephash_pipeline.training.inputs import ArrayInputs, Inputs
from deephash_pipeline.training.loop import TrainingDiverged, train
from deephash_pipeline.training.objectives import CrossEntropy
from deephash_pipeline.training.parameters import TrainingParameters
from deephash_pipeline.training.resuming.checkpoint import CheckpointFolder
from deephash_pipeline.training.resuming.interruption import StopRequest, TrainingInterrupted, stop_requests
from deephash_pipeline.training.resuming.state import History
from deephash_pipeline.training.sampling import first_batch

__all__ = [
    "ArrayInputs",
    "CheckpointFolder",
    "CrossEntropy",
    "FollowsProgress",
    "HasMetrics",
    "History",
    "Inputs",
    "Objective",
    "StopRequest",
    "TrainingDiverged",
    "TrainingInterrupted",
    "TrainingParameters",
    "TrunkAndHead",
    "first_batch",
    "outputs_in_blocks",
    "resolve_device",
    "resolve_devices",
    "stop_requests",
    "train",
    "train_on",
]
