"""A command of `deephash-pipeline` in a process of its own, to be killed, with a small network for photographs."""

import os
import signal
import sys
import time
from contextlib import suppress
from multiprocessing import get_context

from deephash_pipeline.deephash import FeatureExtractor, ImageHasher
from deephash_pipeline.photographs import fitted

# Forked from a process that has imported all they need and has no threads.
PROCESSES = get_context("forkserver")
SIZE = (32, 32)


def command_until_killed(arguments, weights, shipped, said):
    """Say that the command begins, and run it; nothing that it prints is read."""
    with open(os.devnull, "wb") as nothing:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nothing.fileno(), stream.fileno())
    from kedro.framework.project import configure_project  # noqa: PLC0415 - as the command does it

    configure_project("deephash_pipeline")
    from deephash_pipeline.cli.main import cli  # noqa: PLC0415 - wants a configured project

    extractor = FeatureExtractor.pretrained("squeezenet1_1", weights=weights, image_size=SIZE, unit_length=True)
    hasher = ImageHasher.load(shipped, "cpu")
    FeatureExtractor.pretrained = lambda **options: extractor
    ImageHasher.pretrained = lambda name, device: hasher
    fitted.FEWEST = 20
    said.send("begins")
    cli(arguments)


def run(arguments, weights, shipped, seconds=None):
    """Run a command, and kill it so many seconds after it has begun; None to wait for its end.

    Returns:
        Its exit status, -9 if it was killed, and the seconds for which it has worked.
    """
    receiver, sender = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(
        target=command_until_killed, args=(list(map(str, arguments)), str(weights), str(shipped), sender)
    )
    process.start()
    sender.close()
    assert receiver.recv() == "begins"
    began = time.monotonic()
    process.join(seconds)
    if process.is_alive():
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    process.join()
    return process.exitcode, time.monotonic() - began
