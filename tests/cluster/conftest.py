"""A Ray cluster of two nodes of one core each and a head without, which all tests of this folder share."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cluster.local_cluster import complete, start_cluster

ROOT = Path(__file__).resolve().parents[2]
MACHINES = 2


@pytest.fixture(scope="session")
def started_cluster():
    """The cluster, on the loopback device."""
    if find_spec("ray") is None:
        pytest.skip("the extra `ray` is not installed")
    with pytest.MonkeyPatch.context() as patch:
        # Workers import the nodes of these tests.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        started = start_cluster(nodes=MACHINES)
        yield started
        started.shutdown()


@pytest.fixture
def cluster(started_cluster):
    """The cluster with both of its nodes, although a test may have lost one, or a busy machine starved its service."""
    complete(started_cluster, MACHINES)
    return started_cluster
