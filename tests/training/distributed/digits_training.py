"""The embedded digits for several processes: the script that trains them, and the arguments of `train`."""

import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from deephash_pipeline.training import CrossEntropy, LabelledInputs, TrainingRun
from tests.training.distributed import digits_on_ranks
from tests.training.double_inputs import DoubleInputs

ROOT = Path(__file__).resolve().parents[3]
STAGES = ("pre-training", "fine-tuning")
CPU = torch.device("cpu")
SECONDS_TO_WAIT = 600.0
NEVER = 1e9


class SlowInputs(DoubleInputs):
    """Inputs that give a test time to do something between two steps."""

    def batch(self, indices, seed=None, first=0):
        if seed is not None:
            time.sleep(1)
        return super().batch(indices, seed, first)


def until(condition):
    end = time.monotonic() + SECONDS_TO_WAIT
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(*arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", digits_on_ranks.__name__, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def digits(devices=1, checkpoints=None, **changes):
    """Arguments of `train`."""
    inputs, labels = digits_on_ranks.inputs_and_labels()
    return {
        "module": digits_on_ranks.softmax_network(),
        "objective": CrossEntropy(),
        "training_set": LabelledInputs(inputs, labels),
        "parameters": digits_on_ranks.parameters(8),
        "run": TrainingRun("digits", 1, devices=devices, checkpoints=checkpoints),
        **changes,
    }


def slow_digits(**changes):
    """The same training, slowly."""
    arguments = digits(**changes)
    training_set = arguments["training_set"]
    return {**arguments, "training_set": replace(training_set, inputs=SlowInputs(training_set.inputs.inputs))}
