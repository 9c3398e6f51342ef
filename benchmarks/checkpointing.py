"""What checkpoints cost: `python -m benchmarks.checkpointing` saves the state of fine-tuning, network by network.

A training saves itself at most once in the default interval, so the seconds of a save divided by the interval are the
largest share of its time that goes into checkpoints, whatever the length of a step. Where that is above 2 percent, the
engine waits longer than the interval.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
from omegaconf import OmegaConf

from benchmarks.documents import markdown_table
from deephash_pipeline.networks import HashLayer, HashLayerParameters, HashNetwork, build_trunk, initialise
from deephash_pipeline.training.parameters import TrainingParameters
from deephash_pipeline.training.resuming.checkpoint import CheckpointFolder, TrainingState
from deephash_pipeline.training.resuming.continuation import LARGEST_SHARE
from deephash_pipeline.training.resuming.state import Training
from deephash_pipeline.training.schedule import build_schedule

PROJECT = Path(__file__).resolve().parent.parent
NETWORKS = ("lenet", "cifar10_full", "caffenet")
CODE_LENGTH = 48


def training_state(network: str) -> TrainingState:
    """State of fine-tuning in the midst of an epoch: weights, those of the epoch before, momentum."""
    trunk = build_trunk(network)
    initialise(trunk, 0)
    module = HashNetwork(trunk, HashLayer(trunk.z_dimension, CODE_LENGTH, HashLayerParameters(centring=True), 1))
    module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    settings = TrainingParameters(epochs=10, batch_size=100, learning_rate=0.01, schedule="one_cycle")
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    training = Training(module, optimizer, build_schedule(optimizer, settings, 1000))
    optimizer.step()
    training.schedule.after_step()
    return TrainingState(training.tensors(), {**training.values(), "steps": 1}, settings.model_dump())


def seconds_of_saves(state: TrainingState, folder: Path, repeats: int) -> list[float]:
    """Wall seconds of each save, with everything that it flushes to the disk."""
    checkpoints, seconds = CheckpointFolder(folder, 0), []
    for _ in range(repeats):
        began = time.perf_counter()
        checkpoints.save(state)
        seconds.append(time.perf_counter() - began)
    return seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15, help="saves of each network")
    repeats = parser.parse_args().repeats
    interval = OmegaConf.load(PROJECT / "conf" / "base" / "globals.yml").seconds_between_checkpoints
    rows = []
    for network in NETWORKS:
        state = training_state(network)
        with tempfile.TemporaryDirectory(dir=PROJECT / "data") as folder:
            seconds = median(seconds_of_saves(state, Path(folder), repeats))
        size = sum(tensor.nbytes for tensor in state.tensors.values())
        waiting = max(interval, seconds / LARGEST_SHARE)
        rows.append(
            [
                network,
                f"{size / 2**20:.1f}",
                f"{1000 * seconds:.0f}",
                f"{waiting:.0f}",
                f"{100 * seconds / waiting:.2f} %",
            ]
        )
    print(markdown_table(["network", "MiB", "ms to save", "seconds between saves", "share of the time"], rows))


if __name__ == "__main__":
    main()
