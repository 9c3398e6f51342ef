"""Real runs that are killed at random moments end with the files of a run that nobody disturbed, bit for bit."""

import signal
import sys
from pathlib import Path

import pytest

# Benchmarks are not part of the installed package; this makes them importable from the project's folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.chaos import Outcome, plan_round, spread_chaos
from benchmarks.interrupted_runs import MODELS, POLITE, STAGES, results

KILLS = 10


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return spread_chaos(tmp_path_factory.mktemp("chaos"), KILLS, seed=1)


def test_ten_kills_have_hit_training_in_every_stage(outcome: Outcome) -> None:
    assert outcome.hits_of(signal.SIGKILL) >= KILLS
    assert {stage for stage, name in outcome.hits() if name == "SIGKILL"} == {stage.name for stage in STAGES}


def test_not_a_bit_of_any_result_was_lost(outcome: Outcome) -> None:
    assert outcome.differing == []
    made = results(outcome.projects[-1])
    compared = {
        *(f"{MODELS}/pre_training/{name}.safetensors" for name in ("trunk", "softmax")),
        *(f"{MODELS}/deephash_pretrained/b12/{name}" for name in ("hash_layer.safetensors", "encoder.safetensors")),
        *(f"{MODELS}/deephash/b12/{name}" for name in ("trunk.safetensors", "encoder.safetensors", "history.csv")),
        f"{MODELS}/pre_training_history.csv",
        f"{MODELS}/deephash_pretrained/b12/history.csv",
    }
    assert compared <= made.keys()


@pytest.mark.parametrize("number", POLITE, ids=lambda number: number.name)
def test_a_run_that_is_asked_to_stop_says_so_in_one_line_with_the_exit_code_of_the_signal(
    outcome: Outcome, number: signal.Signals
) -> None:
    endings = [ending for ending in outcome.endings if ending.number == number]
    assert endings
    for ending in endings:
        assert ending.status == 128 + number
        assert ending.last_line.startswith("Error: ")
        assert f"after step {ending.steps}" in ending.last_line or "interrupted in epoch" in ending.last_line
        assert ending.last_line.endswith("the same command goes on from there")


def test_no_stage_leaves_more_than_its_last_two_checkpoints(outcome: Outcome) -> None:
    for stage in STAGES:
        names = sorted(path.name for path in (outcome.projects[-1] / stage.checkpoints).iterdir())
        assert len(names) == 4
        assert {Path(name).suffix for name in names} == {".json", ".safetensors"}


def test_the_same_command_goes_on_with_the_last_stage_and_starts_none_over(outcome: Outcome) -> None:
    output = (outcome.projects[-1] / "output.txt").read_text()
    assert "cnn_pretraining: finished before" in output
    assert "deephash_pretrained.b12: finished before" in output
    assert "deephash.b12: goes on in epoch" in output


def test_every_kill_that_is_wanted_is_planned_and_nothing_else() -> None:
    for kills in range(1, 13):
        plan = plan_round(kills, [])
        assert [number for _, number in plan] == [signal.SIGKILL] * kills
    assert plan_round(0, []) == []
    assert sorted(number for _, number in plan_round(-3, list(POLITE))) == sorted(POLITE)
