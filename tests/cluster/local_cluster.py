"""Ray clusters of several nodes on this machine, on the loopback device, for tests and the study of encoding."""

import os
import socket
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest.mock import patch

import psutil

from deephash_pipeline.common.ray_cluster import OBJECT_STORE_BYTES, QUIET

AGENT_PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
MEMORY_OF_A_NODE = 4 * 2**30
"""What tasks may ask for, on any machine: Ray would take what happens to be free when the node begins."""
NO_PORT = "-1"
"""What an agent writes that serves nothing, as without grpcio."""
TASK = "ray::"
"""How the titles of workers begin, before the name of what they do."""


def start_cluster(nodes):
    """Start a cluster of so many nodes of one core, in the attribute `machines`, and a head that runs no task."""
    # Before the first import of Ray, which reads it.
    os.environ.update(QUIET)
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - an extra

    with _ports_are_named():
        cluster = Cluster(initialize_head=True, head_node_args={**_node(cores=0), "include_dashboard": False})
    cluster.machines = []
    complete(cluster, nodes)
    return cluster


def complete(cluster, nodes):
    """Start nodes of one core in the place of those that have ended, until there are so many."""
    cluster.machines = [node for node in cluster.machines if is_there(node)]
    with _ports_are_named():
        while len(cluster.machines) < nodes:
            cluster.machines.append(cluster.add_node(**_node(cores=1)))


def add_node_with_device(cluster):
    """Start a node of one core that says it has a CUDA device, and return it."""
    with _ports_are_named():
        return cluster.add_node(**_node(cores=1), num_gpus=1)


def lose_node(cluster, node):
    """End a node as a machine ends that loses its power: its workers and its services at once."""
    kill_with_children(node.all_processes["raylet"][0].process.pid)
    cluster.remove_node(node, allow_graceful=False)


def is_there(node):
    """Say whether a node's service runs."""
    return any(kind == "raylet" for kind, _ in node.live_processes())


def kill_with_children(number):
    """End a process and all below it, at once."""
    process = psutil.Process(number)
    for started in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            started.kill()


def work_on(node):
    """Name the tasks that workers of a node have under way."""
    names = []
    for process in psutil.Process(node.all_processes["raylet"][0].process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess, IndexError):
            # What follows in the line is what the shorter title has not overwritten.
            title = process.cmdline()[0]
            if title.startswith(TASK) and not title.startswith(f"{TASK}IDLE"):
                names.append(title.removeprefix(TASK))
    return names


@contextmanager
def _ports_are_named():
    """Name the ports of a new node's agents for them.

    Ray ends a node whose agents have not done so after 15 s, which they never do on a busy machine; and here nobody
    asks the agents.
    """
    from ray._private.node import Node  # noqa: PLC0415 - an extra

    make_folder = Node._init_temp

    def make_folder_with_ports(node, *arguments):
        make_folder(node, *arguments)
        for name in AGENT_PORTS:
            Path(node._session_dir, f"{name}_{node._node_id}").write_text(NO_PORT)
        runtime = node._ray_params.runtime_env_agent_port
        Path(node._session_dir, f"runtime_env_agent_port_{node._node_id}").write_text(str(runtime))

    with patch.object(Node, "_init_temp", make_folder_with_ports):
        yield


def _node(cores):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return {
        "num_cpus": cores,
        "memory": MEMORY_OF_A_NODE,
        "node_ip_address": "127.0.0.1",
        "object_store_memory": OBJECT_STORE_BYTES,
        "runtime_env_agent_port": port,
    }
