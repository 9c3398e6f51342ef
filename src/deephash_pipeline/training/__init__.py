"""The training engine: knows a network, an objective and a supply of inputs by their interfaces only."""

from .device import resolve_device
from .inference import outputs_in_blocks
from .inputs import ArrayInputs, Inputs
from .loop import Objective, TrainingDiverged, train
from .objectives import CrossEntropy
from .parameters import TrainingParameters

__all__ = [
    "ArrayInputs",
    "CrossEntropy",
    "Inputs",
    "Objective",
    "TrainingDiverged",
    "TrainingParameters",
    "outputs_in_blocks",
    "resolve_device",
    "train",
]
