"""The embedded digits for several processes: the script that trains them, and the arguments of `train_on`."""

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from deephash_pipeline.training import CrossEntropy

SCRIPT = Path(__file__).parent / "digits_on_ranks.py"
STAGES = ("pre-training", "fine-tuning")
CPU = torch.device("cpu")
SECONDS_TO_WAIT = 120.0
NEVER = 1e9
SHARED = runpy.run_path(str(SCRIPT))


def start(*arguments: Any, **environment: Any) -> Any:
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *map(str, arguments)],
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def digits(**changes: Any) -> dict[str, Any]:
    """Arguments of `train`."""
    inputs, labels = SHARED["inputs_and_labels"]()
    return {
        "module": SHARED["softmax_network"](),
        "objective": CrossEntropy(),
        "inputs": inputs,
        "labels": labels,
        "parameters": SHARED["parameters"](4),
        "seed": 1,
        "device": CPU,
        "description": "digits",
        **changes,
    }
