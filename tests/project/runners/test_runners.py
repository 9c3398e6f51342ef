"""What runs side by side: the same threads, hooks, lines and errors as one node after the other; lost workers."""

import logging
import os
import signal
import threading
import time

import pytest
from kedro.pipeline import Node, Pipeline

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.project.runners import ParallelRunner, SequentialRunner, loop
from deephash_pipeline.project.runners.loop import NodesFailed
from deephash_pipeline.training import TrainingInterrupted
from tests.project.runners.toys import (
    Listener,
    Marker,
    a_catalog,
    add_one,
    count_threads,
    die,
    die_once,
    fail,
    join,
    pipeline,
    speak,
    train_first,
    train_second,
)

pytestmark = pytest.mark.usefixtures("fork_server")
BOTH = pytest.mark.parametrize("runner", [ParallelRunner, SequentialRunner])


@BOTH
def test_every_node_computes_on_one_thread_whatever_numba_starts(runner, run, tmp_path):
    catalog = a_catalog(tmp_path, "made", "other")
    run(runner(), pipeline(made=count_threads, other=add_one), catalog)
    assert catalog.load("made") == {"torch": 1, "numba": 1, "torch after numba": 1, "product": 64.0**3}


def test_nodes_run_in_other_processes_and_their_hooks_where_they_belong(run, tmp_path):
    catalog, here = a_catalog(tmp_path, "first", "second"), Listener()
    run(ParallelRunner(workers=2), pipeline(first=add_one, second=add_one), catalog, here, Marker())
    processes = {catalog.load(name)["a"] - 1 for name in ("first", "second")}
    assert os.getpid() not in processes
    expected = [(moment, name) for moment in ("after", "before") for name in ("first", "second")]
    assert sorted(call[:2] for call in here.calls) == expected
    assert {process for *_, process in here.calls} == {os.getpid()}


def test_one_after_the_other_a_node_has_its_hooks_before_the_next_begins(run, tmp_path):
    catalog, here = a_catalog(tmp_path, "first", "second"), Listener()
    run(SequentialRunner(), pipeline(first=add_one, second=add_one), catalog, here)
    assert [call[0] for call in here.calls] == ["before", "after"] * 2


def test_lines_of_a_worker_are_logged_here(run, tmp_path, caplog):
    catalog = a_catalog(tmp_path, "made", "other")
    with caplog.at_level(logging.INFO, "deephash_pipeline"):
        run(ParallelRunner(workers=1), pipeline(made=speak, other=add_one), catalog)
    assert f"a line from process {catalog.load('made')['pid']}" in caplog.messages
    assert catalog.load("made")["pid"] != os.getpid()


def test_nodes_in_a_row_run_where_the_run_was_started(run, tmp_path):
    catalog = a_catalog(tmp_path, "made")
    run(ParallelRunner(workers=2), pipeline(made=speak), catalog)
    assert catalog.load("made") == {"pid": os.getpid()}


@pytest.mark.parametrize(
    ("runner", "at_work"), [(SequentialRunner, ["", ""]), (ParallelRunner, ["at work: other", ""])]
)
def test_now_and_then_a_line_says_what_is_done_and_what_is_at_work(runner, at_work, run, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_RUN_LINES", 0.0)
    catalog = a_catalog(tmp_path, "made", "other")
    with caplog.at_level(logging.INFO, "deephash_pipeline"):
        run(runner(workers=1), pipeline(made=add_one, other=add_one), catalog)
    said = [message for message in caplog.messages if " of 2 nodes" in message]
    ends = {line.partition(" after")[0]: line.partition("; ")[2] for line in said if not line.startswith("0")}
    assert ends == dict(zip(["1 of 2 nodes", "2 of 2 nodes"], at_work, strict=True))


# A failed node.

FAILING = Pipeline(
    [
        Node(fail, inputs="start", outputs="failed", name="fails"),
        Node(join, inputs=["failed", "good"], outputs="never", name="needs_both"),
        Node(add_one, inputs="never", outputs="last", name="needs_that"),
        Node(add_one, inputs="start", outputs="good", name="good"),
        Node(add_one, inputs="good", outputs="better", name="better"),
    ]
)
OUTPUTS = ("failed", "good", "never", "last", "better")


@BOTH
def test_a_failed_node_stops_only_those_that_need_it(runner, run, tmp_path, caplog):
    catalog, here = a_catalog(tmp_path, *OUTPUTS), Listener()
    with pytest.raises(InputError, match="toy: the disk is gone, bring it back") as caught:
        run(runner(), FAILING, catalog, here)
    assert isinstance(caught.value.__cause__, OSError)
    assert [name for name in OUTPUTS if catalog.exists(name)] == ["good", "better"]
    assert "fails failed, 2 that need it were not run" in caplog.messages
    assert [call[1] for call in here.calls if call[0] == str(caught.value)] == ["fails"]


def test_the_trace_of_an_error_in_a_worker_is_not_lost(run, tmp_path):
    with pytest.raises(InputError) as caught:
        run(ParallelRunner(workers=1), pipeline(failed=fail, other=add_one), a_catalog(tmp_path, "failed", "other"))
    assert 'raise OSError("the disk is gone")' in "".join(caught.value.__notes__)


@BOTH
def test_several_failed_nodes_have_a_line_each(runner, run, tmp_path, caplog):
    catalog = a_catalog(tmp_path, "one", "two", "three")
    with pytest.raises(NodesFailed, match=r"^2 nodes failed: (one, two|two, one)$"):
        run(runner(), pipeline(one=fail, two=fail, three=add_one), catalog)
    lines = sorted(record.getMessage() for record in caplog.records if record.levelno == logging.ERROR)
    assert lines == [f"{name} failed: toy: the disk is gone, bring it back" for name in ("one", "two")]
    assert catalog.exists("three")


@BOTH
def test_nothing_more_starts_after_an_error_if_that_is_wanted(runner, run, tmp_path):
    catalog = a_catalog(tmp_path, *OUTPUTS)
    chain = FAILING.only_nodes("fails") + pipeline(good=add_one)
    with pytest.raises(InputError, match="the disk is gone"):
        run(runner(workers=1, on_error="stop"), chain, catalog)
    assert not catalog.exists("good")


# Workers that are lost.


def test_a_node_whose_process_is_killed_is_run_again(run, tmp_path, caplog):
    catalog = a_catalog(tmp_path, "made", "other")
    run(ParallelRunner(workers=2), pipeline(made=die_once, other=add_one), catalog)
    assert "made: its process was ended by SIGKILL; it is run again" in caplog.messages
    assert catalog.exists("made") and catalog.exists("other")


def test_a_node_whose_process_is_killed_every_time_is_run_again_twice_and_ends_in_one_line(run, tmp_path, caplog):
    catalog = a_catalog(tmp_path, "made", "other")
    with pytest.raises(InputError, match="made: its process was ended by SIGKILL"):
        run(ParallelRunner(workers=2), pipeline(made=die, other=add_one), catalog)
    assert caplog.messages.count("made: its process was ended by SIGKILL; it is run again") == 2
    assert catalog.exists("other")


# Signals.


def test_all_trainings_stop_at_a_whole_step_and_are_named_in_one_line(run, tmp_path, caplog):
    catalog = a_catalog(tmp_path, "failed", "first", "second")
    started = [tmp_path / name / "began" for name in ("first.b12", "second.b12")]

    def interrupt():
        end = time.monotonic() + 600
        while not all(path.exists() for path in started) and time.monotonic() < end:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(TrainingInterrupted) as caught:
        run(ParallelRunner(workers=2), pipeline(failed=fail, first=train_first, second=train_second), catalog)
    message = str(caught.value)
    assert message.startswith("interrupted: ") and message.endswith("; the same command goes on from there")
    assert caught.value.exit_code == 128 + signal.SIGTERM
    assert "failed failed: toy: the disk is gone, bring it back" in caplog.messages
    for name in ("first.b12", "second.b12"):
        assert f"{name} in epoch" in message
        assert list((tmp_path / name).glob("checkpoint-*"))
