"""Small nodes, in a module that worker processes can import, and a catalog that stores what they make."""

import logging
import os
import signal
from pathlib import Path

import numba
import numpy as np
import torch
from kedro.framework.hooks import hook_impl
from kedro.io import DataCatalog
from kedro.pipeline import Node, Pipeline
from torch import nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.training import (
    ArrayInputs,
    CheckpointFolder,
    CrossEntropy,
    LabelledInputs,
    TrainingParameters,
    TrainingRun,
    train,
)
from tests.project.datasets.kinds import json_dataset


def count_threads(start):
    array = np.ones((64, 64))
    return {
        "torch": torch.get_num_threads(),
        "numba": numba.get_num_threads(),
        "torch after numba": torch.get_num_threads(),
        "product": float((array @ array).sum()),
    }


def add_one(start):
    return {name: value + 1 for name, value in start.items() if isinstance(value, int)}


def join(*parts):
    return {str(number): part for number, part in enumerate(parts)}


def fail(start):
    try:
        raise OSError("the disk is gone")
    except OSError as error:
        raise InputError("toy: the disk is gone, bring it back") from error


def die_once(start):
    marker = Path(start["folder"]) / "died"
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"pid": os.getpid()}


def die(start):
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def speak(start):
    logging.getLogger("deephash_pipeline.toys").info("a line from process %d", os.getpid())
    with count_steps("toy", 2, where="epoch 1 of 1") as advance:
        advance("epoch 1 of 1")
        advance("epoch 1 of 1")
    return {"pid": os.getpid()}


class Begun(CrossEntropy):
    """Notes that its training has begun."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def forward(self, *arguments):
        (self.folder / "began").touch()
        return super().forward(*arguments)


def train_for_long(start, name):
    inputs = ArrayInputs(np.zeros((64, 4), np.float32), torch.device("cpu"))
    # By the default schedule training ends where the loss stands still.
    parameters = TrainingParameters(epochs=10**6, batch_size=8, learning_rate=0.1, schedule="one_cycle")
    folder = Path(start["folder"]) / name
    folder.mkdir()
    checkpoints = CheckpointFolder(folder, 1e9)
    labels = np.zeros(64, np.int64)
    run = TrainingRun(name, checkpoints=checkpoints)
    train(nn.Linear(4, 3), Begun(folder), LabelledInputs(inputs, labels), parameters, run)
    return {}


def train_first(start):
    return train_for_long(start, "first.b12")


def train_second(start):
    return train_for_long(start, "second.b12")


def pipeline(**functions):
    """A pipeline of nodes that read `start`; each makes what it is called."""
    return Pipeline([Node(function, inputs="start", outputs=name, name=name) for name, function in functions.items()])


def a_catalog(folder, *names):
    catalog = DataCatalog({name: json_dataset(str(folder / f"{name}.json")) for name in ("start", *names)})
    catalog.save("start", {"a": 1, "folder": str(folder)})
    return catalog


class Listener:
    """A hook that notes where it was called; it works where the run was started."""

    def __init__(self):
        self.calls = []

    @hook_impl
    def before_node_run(self, node):
        self.calls.append(("before", node.name, os.getpid()))

    @hook_impl
    def after_node_run(self, node):
        self.calls.append(("after", node.name, os.getpid()))

    @hook_impl
    def on_node_error(self, node, error):
        self.calls.append((str(error), node.name, os.getpid()))


class Marker:
    """A hook that adds to what a node is given, where the node runs."""

    def in_worker(self):
        return self

    @hook_impl
    def before_node_run(self, node):
        return {"start": {"a": os.getpid()}}
