"""Trains LeNet on the embedded digits, both stages: python -m ... digits_on_ranks folder seconds epochs.

In double precision: in single, the last bit, which depends on the processor, puts a training on another path after a
few steps, in one process as in several. Checkpoints are so many seconds apart. Started with RANK set, as torchrun does,
it is one process of several. What rank 0 has found it writes into the folder.
"""

import json
import os
import sys
from pathlib import Path

import torch

from deephash_pipeline import networks, training
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.images.sources.digits import read_digits
from deephash_pipeline.losses import ExponentiatedLoss
from deephash_pipeline.training.ranks import join_ranks, rank
from tests.training.double_inputs import DoubleInputs

CPU = torch.device("cpu")
IMAGES = 384
SECONDS_TO_WAIT = 600.0
NEVER = 1e9


def inputs_and_labels():
    """The first digits, moved at random."""
    everything = read_digits().splits["all"]
    images, labels = everything.images, everything.labels
    statistics = {"mean": [0.3], "standard_deviation": [0.35]}
    moves = AugmentationParameters(shift_pixels=1, rotation_degrees=5)
    return DoubleInputs(ImageInputs(images[:IMAGES], statistics, CPU, moves)), labels[:IMAGES]


def softmax_network():
    """With fixed weights."""
    network = networks.SoftmaxNetwork(networks.build_trunk("lenet"), 10)
    networks.initialise(network, 1)
    return network.double()


def hash_network(trunk_weights):
    """With fixed weights of the hash layer, whose statistics are those of the whole batch."""
    trunk = networks.build_trunk("lenet").double()
    trunk.load_state_dict(trunk_weights)
    hash_layer = networks.HashLayer(trunk.z_dimension, 24, networks.HashLayerParameters(centring=True, scale=3.0), 2)
    return networks.HashNetwork(trunk, hash_layer.double())


HASHING = ExponentiatedLoss(loss_scale="unit", balance_pairs=True)


def parameters(epochs, **changes):
    """For few epochs."""
    settings = {"batch_size": 128, "learning_rate": 0.02, "weight_decay": 5e-4, "schedule": "one_cycle"}
    return training.TrainingParameters(**{**settings, "epochs": epochs, **changes})


def train_both_stages(folder, seconds_between, epochs):
    """Pre-train and fine-tune; give both histories."""
    inputs, labels = inputs_and_labels()
    network = softmax_network()
    histories = {}
    # The gradient of the hashing loss jumps where a sign changes: large steps multiply differences in the last bit.
    stages = (("pre-training", training.CrossEntropy(), 0.02), ("fine-tuning", HASHING, 0.001))
    for name, objective, learning_rate in stages:
        if name == "fine-tuning":
            network = hash_network(network.trunk.state_dict())
        histories[name] = training.train(
            network,
            objective,
            training.LabelledInputs(inputs, labels),
            parameters(epochs, learning_rate=learning_rate),
            training.TrainingRun(name, 5, checkpoints=training.CheckpointFolder(folder / name, seconds_between)),
        )
    return histories


def main(folder, seconds_between, epochs):
    """Do all of it, and write what was found."""
    join_ranks(CPU)
    histories = train_both_stages(folder, seconds_between, epochs)
    if rank() == 0:
        (folder / "histories.json").write_text(json.dumps(histories))


def as_rank(environment, *arguments):
    """Be one process of several."""
    os.environ.update(environment)
    main(*arguments)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
    except InputError as error:
        sys.stderr.write(f"Error: {error}\n")
        sys.exit(getattr(error, "exit_code", 1))
