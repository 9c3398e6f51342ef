"""A fine-tuning small enough to be killed after every step, and folders that kill it there or keep a copy."""

import hashlib
import shutil
from functools import cache

import numpy as np
import torch
from torch import nn

from deephash_pipeline import training
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.losses import ExponentiatedLoss
from deephash_pipeline.networks import HashLayer, HashLayerParameters, HashNetwork, initialise
from tests.training.resuming.saved_states import content_of, last

CPU = torch.device("cpu")
STATISTICS = {"mean": [0.5], "standard_deviation": [0.25]}
AUGMENTATION = AugmentationParameters(shift_pixels=1, rotation_degrees=10, scale_range=0.1)


def parameters(**changes):
    defaults = {"epochs": 3, "batch_size": 16, "learning_rate": 0.05, "weight_decay": 1e-3}
    return training.TrainingParameters(**{**defaults, **changes})


def images():
    generator = np.random.default_rng(0)
    labels = np.arange(50) % 3
    pixels = generator.integers(0, 120, (50, 1, 8, 8)) + 60 * labels[:, None, None, None]
    return pixels.astype(np.uint8), labels.astype(np.int64)


def hash_network():
    """What fine-tuning trains, small: convolutions, dropout, a layer and a hash layer with statistics of their own."""
    trunk = nn.Sequential(
        nn.Conv2d(1, 5, 3),
        nn.BatchNorm2d(5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.Linear(45, 17),
        nn.ReLU(),
        nn.Dropout(0.2),
    )
    initialise(trunk, 1)
    return HashNetwork(trunk, HashLayer(17, 6, HashLayerParameters(centring=True, scale=3.0, bias=True), 2))


class Killed(BaseException):
    """Stands for SIGKILL: nothing in the engine may catch it."""


class AfterSaving(training.CheckpointFolder):
    """A folder of which a copy is kept after every save, or after whose n-th save of this process the process ends."""

    def __init__(self, folder, copies=None, saves=0):
        super().__init__(folder, 0)
        self.copies, self.saves = copies, saves

    def save(self, state):
        super().save(state)
        self.saves -= 1
        if self.copies:
            shutil.copytree(self.folder, self.copies / f"{len(list(self.copies.glob('*'))):04d}")
        if not self.saves:
            raise Killed


def fine_tune(checkpoints=None, objective=None, network=None, configuration=None, seed=7, data=None, **changes):
    """Train the hash network; return the SHA-256 of its weights and its history."""
    network = network or hash_network()
    pixels, labels = data or images()
    inputs = ImageInputs(pixels, STATISTICS, CPU, AUGMENTATION)
    plain = ImageInputs(pixels, STATISTICS, CPU)
    history = training.train(
        network,
        objective or ExponentiatedLoss(loss_scale="unit", balance_pairs=True),
        training.LabelledInputs(inputs, labels),
        parameters(**changes),
        training.TrainingRun(
            "deephash.b6",
            seed,
            # A number that any lost bit of any weight or running mean would show in, as NumPy has it.
            after_epoch=lambda: {"mean_square": (training.outputs_in_blocks(network, plain) ** 2).mean()},
            checkpoints=checkpoints,
            configuration=configuration or {},
        ),
    )
    return sha256(network), history


def sha256(module):
    digest = hashlib.sha256()
    for name, tensor in module.state_dict().items():
        digest.update(name.encode() + tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


@cache
def uninterrupted():
    return fine_tune()


def exactly(history):
    """To the last digit, with the order of columns and the types of numbers."""
    return repr(history)


def stored(folder):
    return content_of(last(folder))
