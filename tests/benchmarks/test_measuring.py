import time

import pytest

from benchmarks import measuring
from benchmarks.measuring import Method, calls_lasting, interleaved, require_packages
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


def test_every_method_is_timed_apart(clock):
    def advance(seconds):
        clock.now += seconds

    methods = [Method("short", lambda: advance(1)), Method("long", lambda: advance(10))]
    timings = interleaved(methods, rounds=4)
    assert (timings["short"].wall_seconds, timings["long"].wall_seconds) == (1, 10)


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


def test_what_takes_longer_is_called_once(clock):
    def work():
        clock.now += 2

    assert calls_lasting(work, seconds=0.5) == 1


def test_packages_that_are_missing_are_named_with_the_remedy():
    require_packages(["numpy"])
    with pytest.raises(InputError, match=r"^no_such_package cannot be imported; `make bench` installs"):
        require_packages(["numpy", "no_such_package"])


def test_the_clock_chain_does_its_steps_one_after_the_other():
    state, last = 88172645463325252, 2**64 - 1
    for _ in range(100):
        state ^= state << 13 & last
        state ^= state >> 7
        state ^= state << 17 & last
    assert int(measuring._chain(100)) == state


def test_cells_are_described_by_their_clocks_and_by_how_busy_one_thread_was():
    seconds = {"ours": {"cpu": 1.0, "wall": 2.0}, "ours, two threads": {"cpu": 4.0, "wall": 2.0}}
    cells = [{"clock_hertz": 4e9, "seconds": seconds}, {"clock_hertz": 3e9, "seconds": seconds}]
    assert measuring.describe_cells(cells) == (
        "Clock 3.00 to 4.00 GHz in the cells. Methods on one thread kept 0.50 to 0.50 cores busy (CPU by wall time)."
    )
