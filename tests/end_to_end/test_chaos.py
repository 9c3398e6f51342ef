"""A run that is killed again and again ends with the files of one that nobody disturbed, bit for bit.

The run is all stages at one code length, ``full_at_32_bits`` on the digits, by the command that a user types. Kills are
of workers, of the run, and of both together, at moments that `tests.end_to_end.killer` explains; most fall into
trainings, which save themselves at every step. Here it has one method of each kind and ten kills. `make chaos` kills a
hundred times in a run of all methods: DEEPHASH_KILLS sets how often, DEEPHASH_SEED when.
"""

import os
import sys
from collections import Counter

import pytest

from tests.end_to_end.killed_runs import CHECKPOINT, run_both
from tests.end_to_end.killer import GROUP, RUN, WORKER

pytestmark = pytest.mark.chaos

KILLS = int(os.environ.get("DEEPHASH_KILLS", "10"))
SEED = int(os.environ.get("DEEPHASH_SEED", "1"))
WHOLE = "DEEPHASH_KILLS" in os.environ
TRAININGS = {"cnn_pretraining", "hash_layer_init", "fine_tuning"}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    outcome = run_both(tmp_path_factory.mktemp("chaos"), KILLS, SEED, WHOLE)
    victims = Counter(hit.victim for hit in outcome.hits.values())
    sys.stdout.write(f"\n{dict(victims)}, seed {SEED}, in {len(outcome.endings)} starts\n")
    return outcome


def test_every_kill_has_come_true(outcome):
    assert len(outcome.kills) == KILLS
    assert sorted(outcome.hits) == list(range(len(outcome.kills)))


def test_kills_have_hit_workers_and_runs_in_trainings_of_every_stage_and_elsewhere(outcome):
    assert {hit.victim for hit in outcome.hits.values()} == {WORKER, RUN, GROUP}
    trainings = [kill.moment.node.partition(".")[0] for kill in outcome.kills if CHECKPOINT in kill.moment.file]
    assert len(trainings) >= KILLS // 2
    assert set(trainings) == TRAININGS
    assert {kill.moment.node.partition(".")[0] for kill in outcome.kills} > {*TRAININGS, ""}


def test_artefacts_and_manifests_are_those_of_the_undisturbed_run_and_no_other_file_is_left(outcome):
    expected, found = outcome.undisturbed.made(), outcome.disturbed.made()
    assert [name for name in sorted(expected.keys() | found.keys()) if expected.get(name) != found.get(name)] == []
    kinds = ("codes.npz", "hasher.safetensors", "history.csv", "metrics.json", "report.html")
    for kind in kinds:
        for name in (kind, f"{kind}.provenance.json"):
            assert any(path.endswith(f"/{name}") for path in expected), name


def test_a_training_leaves_its_last_two_checkpoints_and_nothing_else(outcome):
    assert outcome.disturbed.checkpoints().keys() == outcome.undisturbed.checkpoints().keys()
    for names in outcome.disturbed.checkpoints().values():
        assert [name.rpartition(".")[2] for name in names] == ["safetensors"] * 2
        assert all(name.startswith(CHECKPOINT) for name in names)


def test_mlflow_shows_one_finished_run_with_one_of_each_cell_and_no_run_at_work(outcome):
    disturbed = outcome.disturbed.tracked_runs()
    # What a cell had logged before a kill is logged again in the run that ends.
    finished = {run for run in disturbed if run[1] == "FINISHED"}
    assert finished == set(outcome.undisturbed.tracked_runs())
    assert {status for _, status in disturbed} == {"FINISHED", "KILLED"}
    assert [name for name, _ in finished if " " in name] == [
        name for name, status in disturbed if status == "FINISHED" and " " in name
    ]


def test_no_process_has_outlived_its_run(outcome):
    assert [ending.left for ending in outcome.endings] == [0] * len(outcome.endings)


def test_the_same_command_goes_on_with_trainings(outcome):
    assert ": goes on in epoch" in outcome.disturbed.log
    assert ": goes on in epoch" not in outcome.undisturbed.log
