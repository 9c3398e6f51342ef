"""Ray clusters of several nodes on this machine, on the loopback device, for tests and studies."""

import os
import socket
from pathlib import Path
from typing import Any
from unittest.mock import patch

from deephash_pipeline.ray_cluster import OBJECT_STORE_BYTES, QUIET

AGENT_PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
NO_PORT = "-1"
"""What an agent writes that serves nothing, as without grpcio."""


def start_cluster(nodes: int) -> Any:
    """Start a cluster of so many nodes of one core; the attribute `others` has all but the first.

    Ray ends a node whose agents have not named their ports after 15 s, which they never do on a busy machine: here
    nobody asks the agents, and the ports are named for them.
    """
    # Before the first import of Ray, which reads it.
    os.environ.update(QUIET)
    from ray._private.node import Node  # noqa: PLC0415 - an extra
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    make_folder = Node._init_temp

    def make_folder_with_ports(node: Any, *arguments: Any) -> None:
        make_folder(node, *arguments)
        for name in AGENT_PORTS:
            Path(node._session_dir, f"{name}_{node._node_id}").write_text(NO_PORT)
        runtime = node._ray_params.runtime_env_agent_port
        Path(node._session_dir, f"runtime_env_agent_port_{node._node_id}").write_text(str(runtime))

    with patch.object(Node, "_init_temp", make_folder_with_ports):
        cluster = Cluster(initialize_head=True, head_node_args={**_node(), "include_dashboard": False})
        cluster.others = [cluster.add_node(**_node()) for _ in range(nodes - 1)]
    return cluster


def _node() -> dict[str, Any]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return {
        "num_cpus": 1,
        "node_ip_address": "127.0.0.1",
        "object_store_memory": OBJECT_STORE_BYTES,
        "runtime_env_agent_port": port,
    }
