"""What checkpoints cost: `python -m benchmarks.checkpointing` saves the state of fine-tuning, network by network.

A training saves itself at most once in the default interval, and less often where that took more than 2 percent.
"""

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from omegaconf import OmegaConf

from benchmarks.documents import PROJECT, markdown_table, rows_by
from benchmarks.training_cases import CODE_LENGTH, hash_network
from deephash_pipeline.training.parameters import TrainingParameters
from deephash_pipeline.training.resuming.checkpoint import CheckpointFolder, TrainingState
from deephash_pipeline.training.resuming.continuation import LARGEST_SHARE
from deephash_pipeline.training.resuming.state import Training
from deephash_pipeline.training.schedule import Schedule

NETWORKS, REPEATS = ("lenet", "cifar10_full", "caffenet"), 15


def training_state(network: str) -> TrainingState:
    """State of fine-tuning in the midst of an epoch: weights, those of the epoch before, momentum."""
    module = hash_network(network, CODE_LENGTH).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    settings = TrainingParameters(epochs=10, batch_size=100, learning_rate=0.01, schedule="one_cycle")
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01, momentum=0.9)
    for parameter in module.parameters():
        parameter.grad = torch.ones_like(parameter)
    training = Training(module, optimizer, Schedule(optimizer, settings, 1000))
    optimizer.step()
    training.schedule.after_step()
    return TrainingState(training.tensors(), {**training.values(), "steps": 1}, settings.model_dump())


def measure(network: str, repeats: int = REPEATS) -> dict[str, Any]:
    """Save the state some times, with everything that is flushed to the disk; a row of the table."""
    interval, state, seconds = OmegaConf.load(PROJECT / "conf" / "base" / "globals.yml"), training_state(network), []
    with tempfile.TemporaryDirectory(dir=PROJECT / "data") as folder:
        checkpoints = CheckpointFolder(Path(folder), 0)
        for _ in range(repeats):
            began = time.perf_counter()
            checkpoints.save(state)
            seconds.append(time.perf_counter() - began)
    waiting = max(interval.seconds_between_checkpoints, median(seconds) / LARGEST_SHARE)
    size = sum(tensor.nbytes for tensor in state.tensors.values()) / 2**20
    return {"network": network, "size": size, "ms": 1000 * median(seconds), "share": median(seconds) / waiting}


if __name__ == "__main__":
    row = "network: `{network}` | MiB: {size:.1f} | ms to save: {ms:.0f} | share of the time: {share:.2%}"
    print(markdown_table(rows_by(row, map(measure, NETWORKS))))
