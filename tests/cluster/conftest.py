"""A Ray cluster of two nodes of one core each, which all tests of this folder share."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cluster.local_cluster import add_node, start_cluster

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def cluster():
    """The cluster, on the loopback device."""
    if find_spec("ray") is None:
        pytest.skip("the extra `ray` is not installed")
    with pytest.MonkeyPatch.context() as patch:
        # Workers import the nodes of these tests.
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        started = start_cluster(nodes=2)
        yield started
        started.shutdown()


@pytest.fixture
def other_node(cluster):
    """The second node, for a test that loses it; there is another one afterwards."""
    yield cluster.others[0]
    cluster.others[0] = add_node(cluster)
