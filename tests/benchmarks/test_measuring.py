import time

import pytest

from benchmarks.measuring import Method, calls_lasting, interleaved
from deephash_pipeline.common.errors import InputError


class Clock:
    """Stands in for both clocks of `time`; CPU time passes half as fast as wall time."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(time, "process_time", lambda: self.now / 2)


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


def test_methods_take_turns():
    calls = []
    methods = [Method("a", lambda: calls.append("a")), Method("b", lambda: calls.append("b"), calls=2)]
    interleaved(methods, rounds=2)
    assert calls == ["a", "b", "b", "a", "b", "b"]


def test_the_median_over_rounds_counts_for_one_call(clock):
    durations = iter([1.0, 1.0, 50.0, 70.0, 2.0, 4.0])

    def work():
        clock.now += next(durations)
        return clock.now

    timing = interleaved([Method("work", work, calls=2)], rounds=3)["work"]
    assert timing.wall_seconds == pytest.approx(3.0)
    assert timing.cpu_seconds == pytest.approx(1.5)
    assert timing.result == pytest.approx(128.0)


def test_no_round_and_equal_names_are_refused():
    with pytest.raises(InputError, match="rounds is 0"):
        interleaved([Method("a", int)], rounds=0)
    with pytest.raises(InputError, match="one name twice: a, a"):
        interleaved([Method("a", int), Method("a", int)], rounds=1)


def test_the_first_call_is_no_guide_to_how_long_the_next_take(clock):
    durations = iter([9.0, 0.1])

    def work():
        clock.now += next(durations)

    assert calls_lasting(work, seconds=0.5) == 5
