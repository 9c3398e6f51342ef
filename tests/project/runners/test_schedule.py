"""The order of nodes, the room there is for them, and what is shown of it."""

from typing import Any

import pytest
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Node, Pipeline

from deephash_pipeline.common.progress import Steps
from deephash_pipeline.project.runners import Capacity, Needs, display, needs
from deephash_pipeline.project.runners.display import RunDisplay
from deephash_pipeline.project.runners.needs import cost_of
from deephash_pipeline.project.runners.schedule import Schedule

ONE = Needs(threads=1, memory=10)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The display's clock, which stands still until it is set."""
    clock = type("Clock", (), {"now": 0.0, "monotonic": lambda self: self.now})()
    monkeypatch.setattr(display, "time", clock)
    return clock


def cell(method: str, *names: str) -> Pipeline:
    """Nodes one after the other."""
    chain = ["start", *(f"after_{name}" for name in names)]
    nodes = [Node(len, inputs=chain[at], outputs=chain[at + 1], name=name) for at, name in enumerate(names)]
    return Pipeline(nodes, namespace=f"stage.{method}.b12", inputs={"start"})


CELLS = cell("lsh", "fit", "encode") + cell("mlh", "fit", "encode") + cell("csq", "fine_tune", "encode")


def started(schedule: Schedule) -> list[str]:
    """Start what there is room for."""
    names = []
    while (following := schedule.start_next()) is not None:
        names.append(following[0].name.removeprefix("stage."))
    return names


def node(schedule: Schedule, name: str) -> Any:
    return next(node for node in schedule.nodes if node.name == f"stage.{name}")


@pytest.mark.parametrize(
    ("device", "devices", "spread"),
    [
        ("auto", 1, True),
        ("cuda", 1, True),
        ("cuda:1", 1, False),
        ("cpu", 1, False),
        ("auto", "auto", False),
        ("cuda", 2, False),
    ],
)
def test_nodes_are_spread_over_devices_unless_a_training_takes_several_or_one_is_named(
    device: str, devices: Any, spread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needs, "devices_of_machine", lambda: ("0", "1"))
    catalog = DataCatalog({"params:experiment": MemoryDataset({"device": device, "devices": devices})})
    assert needs.cuda_devices(catalog) == (("0", "1") if spread else ())
    places = {"cpu": None, "cuda:1": 4}.get(device, 8 if devices == 1 else 4)
    assert needs.places_on_devices(catalog) == places


def test_the_longest_way_to_the_end_starts_first() -> None:
    schedule = Schedule(CELLS, Capacity(threads=2, memory=100), lambda node: ONE)
    assert cost_of(node(schedule, "mlh.b12.fit")) > cost_of(node(schedule, "lsh.b12.fit"))
    assert set(started(schedule)) == {"mlh.b12.fit", "csq.b12.fine_tune"}


def test_a_cell_that_has_begun_is_completed_first() -> None:
    schedule = Schedule(CELLS, Capacity(threads=2, memory=100), lambda node: ONE)
    started(schedule)
    schedule.finish(node(schedule, "mlh.b12.fit"))
    assert started(schedule) == ["mlh.b12.encode"]
    schedule.finish(node(schedule, "mlh.b12.encode"))
    assert started(schedule) == ["lsh.b12.fit"]


def test_as_many_run_as_threads_memory_and_places_allow() -> None:
    def at_once(capacity: Capacity, needs: Needs) -> int:
        return len(started(Schedule(CELLS, capacity, lambda node: needs)))

    assert at_once(Capacity(threads=3, memory=100), ONE) == 3
    assert at_once(Capacity(threads=3, memory=25), ONE) == 2
    assert at_once(Capacity(threads=3, memory=100, nodes=1), ONE) == 1
    assert at_once(Capacity(threads=3, memory=100), Needs(threads=2)) == 1
    assert at_once(Capacity(threads=1, memory=5), Needs(threads=8, memory=100)) == 1


def test_what_needs_a_failed_node_is_left_out() -> None:
    schedule = Schedule(CELLS, Capacity(threads=9, memory=900), lambda node: ONE)
    started(schedule)
    schedule.fail(node(schedule, "csq.b12.fine_tune"))
    assert [each.name for each in schedule.skipped] == ["stage.csq.b12.encode"]
    for name in ("lsh.b12.fit", "mlh.b12.fit"):
        schedule.finish(node(schedule, name))
    assert set(started(schedule)) == {"lsh.b12.encode", "mlh.b12.encode"}


def test_one_line_says_what_is_done_what_runs_and_what_is_left(clock: Any) -> None:
    schedule = Schedule(CELLS, Capacity(threads=2, memory=100), lambda node: ONE)
    shown = RunDisplay(schedule, workers=2)
    assert shown.line() == "0 of 3 cells"
    started(schedule)
    training, fit = node(schedule, "csq.b12.fine_tune"), node(schedule, "mlh.b12.fit")
    shown.start(training)
    shown.start(fit)
    shown.receive(training, Steps("csq.b12", 0, 10, "epoch 1 of 10"))
    assert shown.line() == "0 of 3 cells; csq.b12 epoch 1 of 10; mlh.b12 fit"
    clock.now = 30.0
    shown.receive(training, Steps("csq.b12", 5, 10, "epoch 6 of 10"))
    shown.end(fit, done=True)
    schedule.finish(fit)
    schedule.start_next()
    line = shown.line()
    assert line.startswith("0 of 3 cells; csq.b12 epoch 6 of 10; ")
    assert line.endswith(" left")


def test_steps_of_an_earlier_run_do_not_count_towards_the_time_left(clock: Any) -> None:
    schedule = Schedule(cell("csq", "fine_tune"), Capacity(threads=1, memory=100), lambda node: ONE)
    shown = RunDisplay(schedule, workers=1)
    started(schedule)
    training = node(schedule, "csq.b12.fine_tune")
    shown.start(training)
    shown.receive(training, Steps("csq.b12", 80, 100, "epoch 9 of 10"))
    clock.now = 10.0
    shown.receive(training, Steps("csq.b12", 90, 100, "epoch 10 of 10"))
    assert shown.line() == "0 of 1 cells; csq.b12 epoch 10 of 10; 10 s left"


def test_the_time_left_goes_by_how_long_nodes_of_the_same_kind_have_taken(clock: Any) -> None:
    cells = cell("mlh", "initialise", "fit") + cell("csq", "fine_tune") + cell("dpsh", "fine_tune")
    schedule = Schedule(cells, Capacity(threads=1, memory=100), lambda node: ONE)
    shown = RunDisplay(schedule, workers=1)
    for seconds in (5.0, 7.0, 400.0):
        following = schedule.start_next()
        assert following is not None
        shown.start(following[0])
        clock.now += seconds
        shown.end(following[0], done=True)
        schedule.finish(following[0])
    assert [cost_of(node) for node in schedule.waiting] == [15.0]
    assert shown.line() == "2 of 3 cells; 6 min 40 s left"
