"""Starts the script that trains the embedded digits in several processes."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.training.distributed import digits_on_ranks

ROOT = Path(__file__).resolve().parents[3]
STAGES = ("pre-training", "fine-tuning")
SECONDS_TO_WAIT = 600.0
NEVER = 1e9


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
