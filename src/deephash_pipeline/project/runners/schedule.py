"""Schedule: the cores and memory that a node needs, and which ready node starts next."""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import torch
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node

from deephash_pipeline.networks import NETWORKS
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.project.freshness.graph import EXPERIMENT, Catalog
from deephash_pipeline.project.parameters import is_parameter

GIB = 2**30

SMALL_IMAGE = 64
"""Steps on images of so many pixels are too short for a second thread: a neighbour uses the core better."""
IMAGE_DATASETS = ("training_images", "validation_images", "query_images")
DEVICE = f"{EXPERIMENT}.device"

MEMORY_OF_A_PROCESS = GIB // 2
MEMORY_OF_A_LARGE_NETWORK = 4 * GIB
COPIES_OF_INPUTS = 3

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
        node: node of any pipeline.
        catalog: catalog with its datasets.
        cores: number of cores of the machine.
    """
    # What reads images and the experiment may run the network, which takes all cores if it is large.
    reads_images = not {*IMAGE_DATASETS}.isdisjoint(node.inputs) and EXPERIMENT in node.inputs
    network = _entry(catalog.load(EXPERIMENT), "network") if reads_images else None
    is_large = network and (network not in NETWORKS or max(NETWORKS[network][0].output[1:]) > SMALL_IMAGE)
    memory = MEMORY_OF_A_PROCESS + (MEMORY_OF_A_LARGE_NETWORK if is_large else 0)
    for name in node.inputs:
        dataset = None if is_parameter(name) else catalog.get(name)
        if isinstance(dataset, AtomicFileDataset):
            with suppress(OSError):
                memory += COPIES_OF_INPUTS * dataset.filepath.stat().st_size
    return Needs(cores if is_large else 1, memory)


def steps_to_the_end(nodes: Sequence[Node]) -> dict[str, int]:
    """Give for each node, by name, how many nodes are on the longest way from it to the end of a pipeline.

    Args:
        nodes: nodes of the pipeline, each after those that it needs.
    """
    steps: dict[str, int] = {}
    after: dict[str, int] = {}
    for node in reversed(nodes):
        steps[node.name] = 1 + max((after.get(output, 0) for output in node.outputs), default=0)
        for name in node.inputs:
            after[name] = max(after.get(name, 0), steps[node.name])
    return steps


def device_asked_for(catalog: Catalog) -> str | None:
    """Give the `device` of a run's experiment; None of a run without one."""
    device: str | None = _entry(catalog.load(EXPERIMENT) if EXPERIMENT in catalog else {}, "device")
    return device


def devices_of_machine() -> tuple[str, ...]:
    """Name the CUDA devices that this process sees, as ``CUDA_VISIBLE_DEVICES`` names them to another; none without.

    Example:
        >>> len(devices_of_machine()) == torch.cuda.device_count()
        True
    """
    if not torch.cuda.is_available():
        return ()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return tuple(visible.split(",")) if visible else tuple(map(str, range(torch.cuda.device_count())))


def devices_of_run(catalog: Catalog) -> tuple[str, ...]:
    """Name the CUDA devices that nodes are spread over, one for each node.

    None where the run computes on the CPU, or on a device that it names by its index.
    """
    return devices_of_machine() if device_asked_for(catalog) in ("auto", "cuda") else ()


def places_on_devices(catalog: Catalog) -> int | None:
    """Say how many nodes may compute on the CUDA devices of this machine at a time; None where none does."""
    devices = len(devices_of_run(catalog))
    if ":" in (device_asked_for(catalog) or "") and devices_of_machine():
        devices = 1
    return NODES_ON_A_DEVICE * devices or None


def uses_device(node: Node) -> bool:
    """Say whether a node may compute on the experiment's device."""
    return EXPERIMENT in node.inputs or DEVICE in node.inputs


def _entry(experiment: Any, name: str) -> Any:
    return experiment.get(name) if isinstance(experiment, dict) else getattr(experiment, name, None)


class NodeSchedule:
    """The nodes of a run: ready, running, done, failed, or not to be run because of a failure.

    Args:
        pipeline: pipeline with all its nodes still to be run.
        capacity: what nodes may take up together.
        needs_of: says what a node needs, once its inputs are stored.
        stop_on_error: whether the run ends where a node fails, and what does not need it is not run either.
    """

    def __init__(
        self, pipeline: Pipeline, capacity: Capacity, needs_of: Callable[[Node], Needs], stop_on_error: bool = False
    ) -> None:
        self.stop_on_error = stop_on_error
        self._capacity = capacity
        self._needs_of = cache(needs_of)
        self._parents = {node: set(parents) for node, parents in pipeline.node_dependencies.items()}
        self.nodes = list(pipeline.nodes)
        self._begun: set[str] = set()
        # Looked at thousands of times in a run: what is known of a node is looked up, and who is ready is kept.
        steps = steps_to_the_end(self.nodes)
        self._precedence = {node.name: (steps[node.name], -place) for place, node in enumerate(self.nodes)}
        # Below the stage: ``itq.b12``, or nothing.
        self._cells = {node.name: (node.namespace or "").partition(".")[2] for node in self.nodes}
        self._order = TopologicalSorter(self._parents)
        self._order.prepare()
        self._ready = {node.name: node for node in self._order.get_ready()}
        self.running: dict[Node, Needs] = {}
        self.done: set[Node] = set()
        self.skipped: list[Node] = []
        self.attempts: Counter[Node] = Counter()

    def start_next(self) -> tuple[Node, Needs] | None:
        """Start a node, if one is ready and there is room for it."""
        if not self._ready:
            return None
        # A smaller one is not let past the longest: a node that needs the whole machine would never start.
        name = max(self._ready, key=lambda name: (self._cells[name] in self._begun, self._precedence[name]))
        node = self._ready[name]
        needs = self._needs_of(node)
        if not self._capacity.has_room_for(needs, self.running.values()):
            return None
        del self._ready[name]
        self.running[node] = needs
        # To encode and evaluate what a training has made takes little, and shows it at once.
        self._begun |= {self._cells[name]} - {""}
        self.attempts[node] += 1
        return node, needs

    def finish(self, node: Node) -> None:
        """Note that a node is done."""
        del self.running[node]
        self.done.add(node)
        self._order.done(node)
        self._ready |= {child.name: child for child in self._order.get_ready()}

    def put_back(self, node: Node) -> None:
        """Have a node run again."""
        del self.running[node]
        self._ready[node.name] = node

    def fail(self, node: Node) -> None:
        """Leave out a node that has failed, and all that need what it would have made."""
        del self.running[node]
        lost = {node}
        for other in self.nodes:
            if self._parents[other] & lost:
                lost.add(other)
                self.skipped.append(other)
