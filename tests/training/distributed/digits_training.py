"""What tests of several processes that train have in common."""

import socket
import time

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
