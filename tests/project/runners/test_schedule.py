"""The order of nodes, and the room there is for them."""

import pytest
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Node, Pipeline

from deephash_pipeline.project.runners.schedule import (
    Capacity,
    Needs,
    NodeSchedule,
    devices_of_run,
    needs_of,
    places_on_devices,
    steps_to_the_end,
)

ONE = Needs(threads=1, memory=10)


def cell(method, *names):
    """Nodes one after the other."""
    chain = ["start", *(f"after_{name}" for name in names)]
    nodes = [Node(len, inputs=chain[at], outputs=chain[at + 1], name=name) for at, name in enumerate(names)]
    return Pipeline(nodes, namespace=f"stage.{method}.b12", inputs={"start"})


CELLS = cell("lsh", "fit", "encode") + cell("mlh", "fit", "encode") + cell("csq", "fine_tune", "encode", "measure")


def started(schedule):
    """Start what there is room for."""
    names = []
    while (following := schedule.start_next()) is not None:
        names.append(following[0].name.removeprefix("stage."))
    return names


def node(schedule, name):
    return next(node for node in schedule.nodes if node.name == f"stage.{name}")


@pytest.mark.parametrize(("device", "places"), [("auto", 8), ("cuda", 8), ("cuda:1", 4), ("cpu", None)])
def test_nodes_are_spread_over_devices_unless_one_is_named(device, places, monkeypatch):
    monkeypatch.setattr("deephash_pipeline.project.runners.schedule.devices_of_machine", lambda: ("0", "1"))
    catalog = DataCatalog({"params:experiment": MemoryDataset({"device": device})})
    assert devices_of_run(catalog) == (("0", "1") if places == 8 else ())
    assert places_on_devices(catalog) == places


def test_the_longest_way_to_the_end_starts_first():
    schedule = NodeSchedule(CELLS, Capacity(threads=1, memory=100), lambda node: ONE)
    assert started(schedule) == ["csq.b12.fine_tune"]


def test_a_cell_that_has_begun_is_completed_first():
    schedule = NodeSchedule(CELLS, Capacity(threads=2, memory=100), lambda node: ONE)
    assert started(schedule) == ["csq.b12.fine_tune", "lsh.b12.fit"]
    schedule.finish(node(schedule, "lsh.b12.fit"))
    assert started(schedule) == ["lsh.b12.encode"]
    schedule.finish(node(schedule, "lsh.b12.encode"))
    assert started(schedule) == ["mlh.b12.fit"]


def test_as_many_run_as_threads_memory_and_places_allow():
    def at_once(capacity, needs):
        return len(started(NodeSchedule(CELLS, capacity, lambda node: needs)))

    assert at_once(Capacity(threads=3, memory=100), ONE) == 3
    assert at_once(Capacity(threads=3, memory=25), ONE) == 2
    assert at_once(Capacity(threads=3, memory=100, nodes=1), ONE) == 1
    assert at_once(Capacity(threads=3, memory=100), Needs(threads=2)) == 1
    assert at_once(Capacity(threads=1, memory=5), Needs(threads=8, memory=100)) == 1


def test_what_needs_a_failed_node_is_left_out():
    schedule = NodeSchedule(CELLS, Capacity(threads=9, memory=900), lambda node: ONE)
    started(schedule)
    schedule.fail(node(schedule, "csq.b12.fine_tune"))
    assert [each.name for each in schedule.skipped] == ["stage.csq.b12.encode", "stage.csq.b12.measure"]
    for name in ("lsh.b12.fit", "mlh.b12.fit"):
        schedule.finish(node(schedule, name))
    assert set(started(schedule)) == {"lsh.b12.encode", "mlh.b12.encode"}


def test_a_large_network_takes_all_cores_in_what_reads_images_and_nowhere_else():
    catalog = DataCatalog({"params:experiment": MemoryDataset({"network": "resnet18"})})

    def threads(*inputs):
        return needs_of(Node(len, inputs=list(inputs), outputs="out", name="node"), catalog, cores=8).threads

    assert threads("training_images", "params:experiment") == 8
    assert threads("training_z", "params:experiment") == threads("training_images") == 1


def test_steps_to_the_end_are_those_of_the_longest_way_in_any_order():
    ways = {"root": ("a", "x"), "short": ("x", "end"), "long": ("x", "y"), "last": ("y", "z")}
    nodes = {name: Node(len, inputs=given, outputs=made, name=name) for name, (given, made) in ways.items()}
    for order in (("root", "short", "long", "last"), ("root", "long", "last", "short")):
        assert steps_to_the_end([nodes[name] for name in order]) == {"root": 3, "short": 1, "long": 2, "last": 1}
