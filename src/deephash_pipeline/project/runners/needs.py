"""What a node needs, and how long it takes compared with others."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import joblib
import psutil
from kedro.pipeline.node import Node

from deephash_pipeline.common.devices import cuda_devices as devices_of_machine
from deephash_pipeline.networks import NETWORKS
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.project.freshness.graph import Catalog, is_parameter

GIB = 2**30

COSTS = {
    "pre_train": 50.0,
    "fine_tune": 15.0,
    "train": 15.0,
    "initialise": 5.5,
    "fit": 0.2,
    "fit.mlh": 14.0,
    "fit.ksh": 4.0,
    "fit.bre": 3.0,
    "fit.ldah": 2.7,
    "fit.liong_sdh": 2.7,
}
"""Seconds that nodes take on the digits, by their last name and, where methods differ, the method: ratios count."""
OTHER_COST = 0.1

SMALL_IMAGE = 64
"""Steps on images of so many pixels are too short for a second thread: a neighbour uses the core better."""
TRAININGS = ("pre_train", "fine_tune", "train")
RUN_THE_NETWORK = (
    *TRAININGS,
    "search",
    "extract_training_z",
    "extract_validation_z",
    "extract_query_z",
)
"""Nodes, by their last name, in which a large network takes all cores."""

MEMORY_OF_A_PROCESS = GIB // 2
MEMORY_OF_A_LARGE_NETWORK = 4 * GIB
COPIES_OF_INPUTS = 3

DEVICE = "params:experiment.device"

NODES_ON_A_DEVICE = 4
"""How many nodes share a CUDA device; never measured."""


class Needs(NamedTuple):
    """What a node takes up while it runs.

    Attributes:
        threads: that it computes on. They depend on the network and the machine, never on how many workers there are,
            for its result does.
        memory: bytes.
    """

    threads: int = 1
    memory: int = 0


@dataclass(frozen=True)
class Capacity:
    """What may be taken up at the same time.

    Attributes:
        threads: as many as workers.
        memory: bytes.
        nodes: most that may run; None for as many as there is room for.
    """

    threads: int
    memory: int
    nodes: int | None = None

    def has_room_for(self, needs: Needs, running: Iterable[Needs]) -> bool:
        """Say whether a node may start; one alone always may."""
        taken = list(running)
        return not taken or (
            (self.nodes is None or len(taken) < self.nodes)
            and sum(each.threads for each in taken) + needs.threads <= self.threads
            and sum(each.memory for each in taken) + needs.memory <= self.memory
        )


def needs_of(node: Node, catalog: Catalog, cores: int) -> Needs:
    """Say what a node needs, whose inputs are stored.

    Args:
        node: of any pipeline.
        catalog: with its datasets.
        cores: of the machine.
    """
    is_large = _last_name(node) in RUN_THE_NETWORK and _is_large(_experiment(node, catalog, "network"))
    memory = MEMORY_OF_A_PROCESS + (MEMORY_OF_A_LARGE_NETWORK if is_large else 0)
    for name in node.inputs:
        dataset = None if is_parameter(name) else catalog.get(name)
        if isinstance(dataset, AtomicFileDataset):
            with suppress(OSError):
                memory += COPIES_OF_INPUTS * dataset.filepath.stat().st_size
    processes = _experiment(node, catalog, "devices")
    return Needs(cores if is_large else processes if isinstance(processes, int) else 1, memory)


def kind_of(node: Node) -> str:
    """Name what nodes that take about as long have in common: the last name and, where methods differ, the method."""
    last = _last_name(node)
    of_method = ".".join([last, *(node.namespace or "").split(".")[1:2]])
    return of_method if of_method in COSTS else last


def cost_of(node: Node) -> float:
    """Estimate how long a node takes, in any unit."""
    return COSTS.get(kind_of(node), OTHER_COST)


def cell_of(node: Node) -> str:
    """Name the cell that a node is of, such as ``itq.b12``; empty if it is of none."""
    return ".".join((node.namespace or "").split(".")[1:])


def costs_to_the_end(nodes: Sequence[Node], cost: Callable[[Node], float] = cost_of) -> dict[str, float]:
    """Give for each node, by name, the cost of the longest way from its beginning to the end of a pipeline.

    Args:
        nodes: of the pipeline, each after those that it needs.
        cost: of a node.
    """
    costs: dict[str, float] = {}
    after: dict[str, float] = {}
    for node in reversed(nodes):
        costs[node.name] = cost(node) + max((after.get(output, 0.0) for output in node.outputs), default=0.0)
        for name in node.inputs:
            after[name] = max(after.get(name, 0.0), costs[node.name])
    return costs


def count_cores() -> int:
    """Count the cores that this process may use, within the limits of a container."""
    return int(joblib.cpu_count())


def available_memory() -> int:
    """Give the bytes of memory that are free, or can be made so."""
    return int(psutil.virtual_memory().available)


def devices_asked_for(catalog: Catalog) -> tuple[str | None, Any]:
    """Give `device` and `devices` of a run's experiment; of a run without one, None and 1."""
    experiment = catalog.load("params:experiment") if "params:experiment" in catalog else {}
    return _entry(experiment, "device"), _entry(experiment, "devices") or 1


def cuda_devices(catalog: Catalog) -> tuple[str, ...]:
    """Name the CUDA devices that nodes are spread over, one for each node.

    None where the run computes on the CPU, on a device that it names by its index, or on several in each training.
    """
    device, devices = devices_asked_for(catalog)
    return devices_of_machine() if device in ("auto", "cuda") and devices == 1 else ()


def places_on_devices(catalog: Catalog) -> int | None:
    """Say how many nodes may compute on the CUDA devices of this machine at a time; None where none does."""
    device, devices = devices_asked_for(catalog)
    there = 0 if device in ("cpu", None) else len(devices_of_machine())
    if not there:
        return None
    of_a_training = there if devices == "auto" or ":" in str(device) else devices
    return max(1, there // of_a_training) * NODES_ON_A_DEVICE


def trains(node: Node) -> bool:
    """Say whether a node is a training, which may take several devices."""
    return _last_name(node) in TRAININGS


def uses_device(node: Node) -> bool:
    """Say whether a node computes on the experiment's device."""
    last = _last_name(node)
    return (
        last in (*RUN_THE_NETWORK, "initialise", "make_index") or last.startswith("describe_") or DEVICE in node.inputs
    )


def _last_name(node: Node) -> str:
    return str(node.name).rpartition(".")[2]


def _is_large(network: str | None) -> bool:
    return network is not None and (network not in NETWORKS or max(NETWORKS[network][0].output[1:]) > SMALL_IMAGE)


def _experiment(node: Node, catalog: Catalog, name: str) -> Any:
    """Give a parameter of the experiment that a node takes part in; None for one that takes part in none."""
    if "params:experiment" not in node.inputs:
        return None
    return _entry(catalog.load("params:experiment"), name)


def _entry(experiment: Any, name: str) -> Any:
    return experiment.get(name) if isinstance(experiment, dict) else getattr(experiment, name, None)
