"""What the nodes of a small pipeline do, in workers of Ray."""

import os
import signal
import time
from pathlib import Path

from deephash_pipeline.common.errors import InputError


def count(text):
    return {"letters": len(text), "process": os.getpid()}


def visible_device(text, *_):
    return {"device": os.environ.get("CUDA_VISIBLE_DEVICES"), "process": os.getpid()}


def count_on_a_worker_that_dies_once(text):
    mark = Path("died.txt")
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return count(text)


def refuse(text):
    try:
        raise KeyError("cause")
    except KeyError as error:
        raise InputError(f"{text} is refused: give another") from error


def add(first, second):
    return {"letters": first["letters"] + second["letters"]}


def wait_for_interruption(text):
    Path("began.txt").touch()
    try:
        # As training does, it comes back to Python often: Ray's interruption waits for that.
        for _ in range(3000):
            time.sleep(0.1)
    except KeyboardInterrupt:
        Path("interrupted.txt").touch()
        raise
    return {}
