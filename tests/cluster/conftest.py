"""A Ray cluster of two nodes of one core each and a head without, which all tests of this folder share."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cluster.local_cluster import add_node, is_there, lose_node, start_cluster

ROOT = Path(__file__).resolve().parents[2]
MACHINES = 2


@pytest.fixture(scope="session")
def cluster():
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
def lose(cluster):
    """A function that loses one of the two nodes, which both are there when the test begins and after it."""

    def mend():
        # Ray's own services end by themselves where a busy machine starves them.
        cluster.machines = [node for node in cluster.machines if is_there(node)]
        while len(cluster.machines) < MACHINES:
            cluster.machines.append(add_node(cluster))

    mend()
    yield lambda node: lose_node(cluster, node)
    mend()
