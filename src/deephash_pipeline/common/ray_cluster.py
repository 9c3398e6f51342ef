"""A Ray cluster: the one at an address, or one that is started on this machine for as long as it is used.

Nothing of Ray is imported before `connected_to_ray` is entered.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import required

OBJECT_STORE_BYTES = 2 * 10**8
"""Of a cluster on this machine: what is sent are names and small results, and ``/dev/shm`` may be small."""
SECONDS_TO_REACH_RAY = 5
THIS_MACHINE = "local"
"""Address of a cluster that Ray begins."""
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Else 127.0.0.1 is replaced by the machine's address in the network.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}


@contextmanager
def connected_to_ray(address: str | None, cpus: int | None = None) -> Iterator[Any]:
    """Give the module ``ray``, connected.

    Args:
        address: address of the cluster, ``auto`` for the one that this machine is a node of, or ``ray://host:port``;
            None for one on this machine, on the loopback device alone, unless ``RAY_ADDRESS`` names one.
        cpus: number of cores of a cluster on this machine; None for all cores.

    Raises:
        InputError: Ray is not installed, or there is no cluster at the address.
    """
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    ray = required("ray", "ray")
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "warning", "configure_logging": False}
    # Told nothing, Ray would also take the cluster that was last begun on this machine, whose ever it is.
    address = address or os.environ.get("RAY_ADDRESS") or THIS_MACHINE
    if address == THIS_MACHINE:
        options |= {
            "num_cpus": cpus,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            "_node_ip_address": "127.0.0.1",
        }
    try:
        if address != THIS_MACHINE and (server := urlsplit(address if "://" in address else f"//{address}")).port:
            # Ray would try again for minutes.
            socket.create_connection((server.hostname, server.port), SECONDS_TO_REACH_RAY).close()
        ray.init(address, **options)
    # Whatever it is: Ray says by a plain exception that a machine is too slow to begin a cluster.
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        raise InputError(f"there is no Ray cluster at {address} ({reason}): name another --address") from error
    try:
        yield ray
    finally:
        ray.shutdown()
