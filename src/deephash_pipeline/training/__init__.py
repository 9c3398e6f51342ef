"""The training engine: knows a network, an objective and a supply of inputs by their interfaces only."""

from .checkpoint import CheckpointFolder
from .device import resolve_device
from .gradients import FollowsProgress, Objective, TrunkAndHead
from .inference import outputs_in_blocks
from .inputs import ArrayInputs, Inputs
from .interruption import TrainingInterrupted
from .launch import resolve_devices, train_on
from .loop import TrainingDiverged, train
from .objectives import CrossEntropy
from .parameters import TrainingParameters
from .sampling import first_batch

__all__ = [
    "ArrayInputs",
    "CheckpointFolder",
    "CrossEntropy",
    "FollowsProgress",
    "Inputs",
    "Objective",
    "TrainingDiverged",
    "TrainingInterrupted",
    "TrainingParameters",
    "TrunkAndHead",
    "first_batch",
    "outputs_in_blocks",
    "resolve_device",
    "resolve_devices",
    "train",
    "train_on",
]
