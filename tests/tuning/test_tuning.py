"""Equal tuning: what is drawn, what is stored, what a killed search ends with, and who wins."""

import os
import resource
import signal
from dataclasses import replace

import numpy as np
import optuna
import pandas as pd
import pytest
from pydantic import ValidationError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.working_place import CODE_DIGEST, FORCED, WorkingPlace
from deephash_pipeline.deephash import FineTuningParameters, LabelledImages, PreTrainedWeights
from deephash_pipeline.deephash.fine_tune import build_network
from deephash_pipeline.losses import LOSS_PARAMETERS
from deephash_pipeline.pipelines.tuning.nodes import search_parameters
from deephash_pipeline.retrieval.protocols import PROTOCOLS
from deephash_pipeline.training import TrainingInterrupted
from deephash_pipeline.tuning import study
from deephash_pipeline.tuning.space import TRIAL_SCORE, Bounds, TuningParameters, search_space, with_values
from deephash_pipeline.tuning.study import best_trials, search, tuned_parameters
from deephash_pipeline.tuning.trial import Outcome, TrialJob, TrialWatch, halves, run_trial
from tests.pipelines.squares import IMAGES, LABELS, TRAINING, TRAINING_SET, run_of, squares

DPSH = FineTuningParameters.model_validate({"training": {**TRAINING, "epochs": 4}, "loss": {"name": "dpsh"}})
# Rates at which this loss stays finite.
RATES = Bounds(low=1e-3, high=0.3)
TUNING = TuningParameters(trials=6, random_trials=2, trials_before_pruning=2, learning_rate=RATES)
VALIDATION_SET = LabelledImages(*squares(18, seed=2))


def job(tuning=TUNING, method=DPSH, run=None):
    run = run or run_of("dpsh")
    network = build_network(TRAINING_SET, method, run)
    start = PreTrainedWeights(network.trunk.state_dict(), network.hash_layer.state_dict())
    return TrialJob(TRAINING_SET, VALIDATION_SET, method, start, run, tuning)


def without_seconds(trials):
    return trials.drop(columns="seconds")


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    storage = WorkingPlace(tmp_path_factory.mktemp("searched") / "study.db")
    return storage, search(job(), storage)


# What is searched.


@pytest.mark.parametrize("loss", LOSS_PARAMETERS)
def test_every_loss_is_searched_over_the_same_rates_and_around_the_authors_own_weights(loss):
    method = FineTuningParameters.model_validate(
        {"training": TRAINING, "loss": {"name": loss}, "augmentation": {"shift_pixels": 1}}
    )
    space = search_space(method, TuningParameters())
    rate, head, decay, *own = space
    assert (rate, head, decay) == ("training.learning_rate", "training.head_rate_factor", "training.weight_decay")
    assert (space[rate].low, space[rate].high) == (0.001, 1.0)
    for name in own:
        default = LOSS_PARAMETERS[loss].model_fields[name.removeprefix("loss.")].default
        assert default / 10**1.5 <= space[name].low * 1.000001
        assert space[name].low < default <= space[name].high <= default * 10**1.5 * 1.000001
        for bound in (space[name].low, space[name].high):
            assert with_values(method, {name: bound}).loss.model_dump()[name.removeprefix("loss.")] == bound


def test_the_scale_of_u_is_searched_where_the_hash_layer_sets_one():
    given = {"training": TRAINING, "loss": {"name": "greedy_hash"}}
    scaled = FineTuningParameters.model_validate({**given, "hash_layer": {"centring": True, "scale": 3.0}})
    space = search_space(scaled, TuningParameters())
    assert (space["hash_layer.scale"].low, space["hash_layer.scale"].high) == (0.3, 5.0)
    found = with_values(scaled, {"hash_layer.scale": 1.0, "training.head_rate_factor": 5.0})
    assert (found.hash_layer.centring, found.hash_layer.scale, found.training.head_rate_factor) == (True, 1.0, 5.0)
    assert "hash_layer.scale" not in search_space(FineTuningParameters.model_validate(given), TuningParameters())


@pytest.mark.parametrize("loss", ["orthohash", "psldh"])
def test_a_winner_at_the_end_of_its_range_is_still_accepted_when_it_is_rounded(loss):
    method = FineTuningParameters.model_validate({"training": TRAINING, "loss": {"name": loss}})
    highest = search_space(method, TuningParameters(decades=3.0))["loss.margin"].high
    row = {"method": loss, "trial": 1, "state": "complete", TRIAL_SCORE: 0.9, "loss.margin": highest}
    margin = tuned_parameters(pd.DataFrame([row]))["fine_tuning"][loss]["loss"]["margin"]
    assert margin == 1.99
    with_values(method, {"loss.margin": margin})


def test_what_a_method_does_not_take_and_ranges_without_extent_are_refused():
    with pytest.raises(ValidationError, match="gamma"):
        with_values(DPSH, {"loss.gamma": 1.0})
    for bounds in ({"low": 0.1, "high": 0.1}, {"low": 0, "high": 1}):
        with pytest.raises(ValidationError, match="learning_rate"):
            TuningParameters.model_validate({"learning_rate": bounds})


# What trials are judged by.


def test_one_half_of_the_validation_images_asks_and_the_other_is_searched_and_too_few_are_refused():
    asking, found = halves(VALIDATION_SET, seed=3)
    assert np.bincount(asking.labels).tolist() == np.bincount(found.labels).tolist() == [3, 3, 3]
    rows = {image.tobytes() for part in (asking, found) for image in part.images}
    assert rows == {image.tobytes() for image in VALIDATION_SET.images}
    for count in (0, 1):
        with pytest.raises(InputError, match=r"data_ingestion\.validation_share"):
            halves(LabelledImages(IMAGES[:count], LABELS[:count]), seed=0)


# What a search leaves.


def test_a_search_makes_as_many_trials_as_asked_for_each_of_values_of_its_own_within_its_ranges(searched):
    storage, trials = searched
    # A finished one only gives them again.
    pd.testing.assert_frame_equal(search(job(), storage), trials)
    assert trials["trial"].tolist() == [1, 2, 3, 4, 5, 6]
    assert set(trials["state"]) <= {"complete", "pruned", "failed"}
    for name, bounds in search_space(DPSH, TUNING).items():
        assert trials[name].between(bounds.low, bounds.high).all()
        assert trials[name].nunique() == len(trials)
    complete = trials[trials["state"] == "complete"]
    # Half of four epochs.
    assert (complete["epochs"] == 2).all()
    assert complete[TRIAL_SCORE].between(0, 1).all()


@pytest.mark.parametrize("stored", [1, 3])
def test_a_search_that_was_killed_between_any_two_trials_ends_as_it_would_have(searched, tmp_path, monkeypatch, stored):
    add_trial, left = optuna.Study.add_trial, stored

    def add_until_killed(study, trial):
        nonlocal left
        # Studies in memory, which draws are made in, have no name of ours.
        if study.study_name.startswith("dpsh.b12 "):
            if not left:
                raise SystemExit
            left -= 1
        add_trial(study, trial)

    with monkeypatch.context() as patch:
        patch.setattr(optuna.Study, "add_trial", add_until_killed)
        with pytest.raises(SystemExit):
            search(job(), WorkingPlace(tmp_path / "study.db"))
    found = search(job(), WorkingPlace(tmp_path / "study.db"))
    pd.testing.assert_frame_equal(without_seconds(found), without_seconds(searched[1]))


def test_a_search_that_is_asked_to_stop_names_the_trial_that_begins_anew(tmp_path, monkeypatch):
    def ask_to_stop(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        return {}

    with monkeypatch.context() as patch:
        patch.setattr(TrialWatch, "__call__", ask_to_stop)
        message = "^dpsh.b12: interrupted in trial 1 of 6; the same command begins it anew$"
        with pytest.raises(TrainingInterrupted, match=message) as caught:
            search(job(), WorkingPlace(tmp_path / "study.db"))
    assert caught.value.exit_code == 128 + signal.SIGTERM
    (summary,) = optuna.get_all_study_summaries(f"sqlite:///{tmp_path / 'study.db'}")
    assert summary.n_trials == 0


def test_a_disk_that_is_full_is_one_line(searched, tmp_path, monkeypatch):
    def filling_the_disk(*_):
        # What SQLite writes from now on does not fit.
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        return Outcome("complete", {1: 0.5}, 1.0)

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with (
            monkeypatch.context() as patch,
            pytest.raises(InputError, match=r"study\.db cannot be written \(.*\): make room") as caught,
        ):
            patch.setattr(study, "run_trial", filling_the_disk)
            search(job(), WorkingPlace(tmp_path / "study.db"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert "\n" not in str(caught.value)
    pd.testing.assert_frame_equal(
        without_seconds(search(job(), WorkingPlace(tmp_path / "study.db"))), without_seconds(searched[1])
    )


@pytest.mark.parametrize("decades", [1e-17, 400])
def test_ranges_that_no_number_has_are_refused(decades):
    with pytest.raises(ValidationError, match="decades"):
        TuningParameters(decades=decades)


def test_a_quick_look_searches_at_the_rate_that_it_trains_with():
    run = run_of("dpsh")
    quick = replace(job(), run=replace(run, experiment=run.experiment.model_copy(update={"effort": 0.5})))
    values = {"training.learning_rate": 0.1}
    assert quick.shortened(values).training.learning_rate == 0.05
    assert job().shortened(values).training.learning_rate == 0.1


def test_trials_of_another_configuration_count_for_nothing(searched):
    storage, trials = searched
    other = job(TUNING.model_copy(update={"trials": 2}), with_values(DPSH, {"training.learning_rate": 0.05}))
    # The rate is searched, so a configured one makes no difference; the number of epochs does.
    pd.testing.assert_frame_equal(search(other, storage), trials.head(2))
    longer = DPSH.model_copy(update={"training": DPSH.training.model_copy(update={"epochs": 2})})
    found = search(job(TUNING.model_copy(update={"trials": 1}), longer), storage)
    assert found["epochs"].tolist() == [1]


def test_trials_of_other_code_count_for_nothing_and_a_forced_run_makes_its_own_once(tmp_path, monkeypatch):
    made, one = [], job(TUNING.model_copy(update={"trials": 1}))
    monkeypatch.setattr(study, "run_trial", lambda *_: made.append(1) or Outcome("complete", {1: 0.5}, 0.1))
    forced = {CODE_DIGEST: "other", FORCED: "this run"}
    for provenance, total in (
        ({}, 1),
        ({}, 1),
        ({CODE_DIGEST: "other"}, 2),
        (forced, 3),
        (forced, 3),
        ({CODE_DIGEST: "other"}, 3),
    ):
        search(one, WorkingPlace(tmp_path / "study.db", provenance))
        assert sum(made) == total
    (tmp_path / "study.db").write_bytes(b"no database")
    with pytest.raises(
        InputError, match=r"study\.db cannot be written \(.*\): it is damaged, .*, or delete it to start over$"
    ):
        search(one, WorkingPlace(tmp_path / "study.db"))


def test_a_trial_after_the_median_of_earlier_ones_is_stopped_early():
    space = search_space(DPSH, TUNING)
    values = {name: bounds.low for name, bounds in space.items()}
    ended = {"value": 2.0, "params": values, "distributions": dict(space)}
    earlier = 3 * [optuna.trial.create_trial(**ended, intermediate_values={1: 2.0, 2: 2.0})]
    hasty = job(TUNING.model_copy(update={"epochs_before_pruning": 0.0}))
    assert run_trial(hasty, values, earlier).state == "pruned"
    assert run_trial(hasty, values, []).state == "complete"


def test_the_trials_of_a_frozen_trunk_are_judged_by_images_and_leave_its_z_to_train_on():
    frozen = DPSH.model_copy(update={"frozen_trunk": True})
    values = {name: bounds.low for name, bounds in search_space(frozen, TUNING).items()}
    start = job(method=frozen).start._replace(z=np.ones((len(IMAGES), 500), np.float32))
    assert list(run_trial(replace(job(method=frozen), start=start), values, []).scores) == [1, 2]


def test_a_trial_whose_loss_is_not_finite_has_failed_and_counts():
    wide = TUNING.model_copy(update={"learning_rate": Bounds(low=1e-3, high=1e31)})
    values = {name: bounds.low for name, bounds in search_space(DPSH, wide).items()} | {"training.learning_rate": 1e30}
    assert run_trial(job(wide), values, []).state == "failed"


# Who wins.


def rows(method, *outcomes):
    found = pd.DataFrame(outcomes, columns=["state", TRIAL_SCORE], index=range(1, len(outcomes) + 1))
    return found.assign(method=method, trial=found.index, **{"training.learning_rate": found.index / 7})


def test_the_best_trial_that_came_to_its_end_wins_of_equal_ones_the_first_and_without_one_there_is_no_winner(caplog):
    trials = rows("dpsh", ("complete", 0.8), ("pruned", 0.9), ("complete", 0.85), ("complete", 0.85))
    without = rows("dsh", ("pruned", 0.9))
    assert best_trials(pd.concat([without, trials]))["trial"].tolist() == [3]
    assert "dsh: no trial came to its end" in caplog.text
    with pytest.raises(InputError, match="dsh: no trial came to its end"):
        best_trials(without)


def test_the_winners_are_a_configuration_of_the_group_that_methods_are_configured_in():
    csq = rows("csq", ("complete", 0.8)).assign(**{"loss.quantisation_weight": 0.0123456})
    assert tuned_parameters(pd.concat([rows("dpsh", ("complete", 0.8)), csq])) == {
        "fine_tuning": {
            "dpsh": {"training": {"learning_rate": 0.143}},
            "csq": {"training": {"learning_rate": 0.143}, "loss": {"quantisation_weight": 0.0123}},
        }
    }


@pytest.mark.parametrize("protocol", [name for name, own in PROTOCOLS.items() if "validation" in own.database])
def test_what_queries_search_chooses_no_parameter(protocol, tmp_path):
    with pytest.raises(InputError, match=f"tuning judges by validation images, and protocol {protocol} searches them"):
        search_parameters(job(), protocol, WorkingPlace(tmp_path / "study.db"))
    assert not list(tmp_path.iterdir())
