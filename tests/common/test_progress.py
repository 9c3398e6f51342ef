"""What one sees of long computations: a bar that moves and says how much time is left, or a line now and then."""

import io
import logging
import re
import threading

import pytest
from rich.console import Console

from deephash_pipeline.common import progress


class Clock:
    """Seconds that pass only where a test says so."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def in_a_log():
    return Console(file=io.StringIO(), force_terminal=False)


def on_a_terminal(clock):
    return Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None, get_time=clock.monotonic)


def drawn(console):
    """The lines that a terminal was given, without the codes that move its cursor."""
    lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", console.file.getvalue()).splitlines()
    return [line for line in lines if line.strip()]


def test_items_pass_through_in_order_with_and_without_a_terminal(clock):
    for console in (on_a_terminal(clock), in_a_log()):
        assert list(progress.track(range(5), "counting", 5, console)) == [0, 1, 2, 3, 4]


def test_a_log_gets_a_line_now_and_then_with_the_time_left(clock, caplog):
    with caplog.at_level(logging.INFO, "deephash_pipeline"):
        list(progress.track(range(3), "quick", 3, in_a_log()))
        assert caplog.messages == []
        for _ in progress.track(range(100), "slow", 100, in_a_log()):
            clock.now += 12
    assert caplog.messages[:2] == ["slow: 3 of 100, 19 min 24 s left", "slow: 6 of 100, 18 min 48 s left"]
    assert len(caplog.messages) == 33


@pytest.mark.parametrize("seconds", [0.5, 45, 400])
def test_a_bar_shows_the_time_left_however_long_a_step_takes(clock, seconds):
    console = on_a_terminal(clock)
    with progress.count_steps("deephash.b48", 10, where="epoch 1 of 2", console=console) as advance:
        for _ in range(6):
            clock.now += seconds
            advance("epoch 2 of 2")
    minutes, rest = divmod(4 * seconds, 60)
    assert f"epoch 2 of 2 0:{minutes:02.0f}:{rest:02.0f}" in drawn(console)[-1]


def test_steps_of_an_earlier_run_are_done_but_do_not_count_towards_the_speed(clock, caplog):
    with (
        caplog.at_level(logging.INFO, "deephash_pipeline"),
        progress.count_steps("deephash.b48", 200, done=130, console=in_a_log()) as advance,
    ):
        clock.now += 40
        advance("epoch 14 of 20")
        clock.now += 40
        advance("epoch 14 of 20")
    # The first step has imports and compilers before it.
    assert caplog.messages == ["deephash.b48: epoch 14 of 20", "deephash.b48: epoch 14 of 20, 45 min 20 s left"]


def test_a_bar_does_not_draw_a_frame_for_every_step(clock):
    console = on_a_terminal(clock)
    for _ in progress.track(range(1000), "fast", 1000, console):
        clock.now += 1e-4
    assert "1000 of 1000" in drawn(console)[-1]
    assert len(drawn(console)) < 100


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (7380, "2 h 3 min")])
def test_durations_read_like_those_of_people(seconds, text):
    assert progress.duration(seconds) == text


def test_a_process_that_another_has_started_draws_nothing_on_the_terminal_they_share(clock, caplog, monkeypatch):
    console = on_a_terminal(clock)
    monkeypatch.setattr("multiprocessing.parent_process", lambda: "the run")
    with caplog.at_level(logging.INFO, "deephash_pipeline"):
        for _ in progress.track(range(2), "gist", 2, console):
            clock.now += 40
    assert drawn(console) == []
    assert caplog.messages == ["gist: 1 of 2", "gist: 2 of 2, 0 s left"]


def test_a_long_first_step_is_told_of_within_seconds_where_no_log_is_kept(monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_TO_FIRST_LINE", 0.01)
    monkeypatch.setattr(progress.logger, "isEnabledFor", lambda level: False)
    console, told = in_a_log(), threading.Event()
    monkeypatch.setattr(console, "print", lambda line, **_: (console.file.write(line), told.set()))
    with progress.count_steps("vectors", 10, where="fitting a hash function", console=console):
        assert told.wait(10)
    assert console.file.getvalue() == "vectors: fitting a hash function"
