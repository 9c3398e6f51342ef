"""OpenMP, by which PyTorch and scikit-learn compute on several threads."""

import os


def wait_asleep() -> None:
    """Let threads sleep while they wait for one another, unless the environment says how they wait.

    By default they wait at work: beside other programs a waiting thread then takes the processor from the one that it
    waits for, several hundred times in a step of training. Counts for this process and those that it starts, if it has
    not loaded OpenMP yet.

    Example:
        >>> wait_asleep()
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
