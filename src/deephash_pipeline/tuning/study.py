"""The trials of one method, one after the other, each stored in SQLite when it is finished.

What is drawn is a function of the seed and the trials before. So a search that was killed, even by SIGKILL, draws what
it had drawn, and ends as it would have ended. Searches of several methods run side by side.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import blake2b
from typing import Any

import numpy as np
import optuna
import pandas as pd
from optuna.distributions import FloatDistribution
from optuna.exceptions import StorageInternalError
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import DatabaseError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import flatten
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.common.working_place import CODE_DIGEST, FORCED, WorkingPlace
from deephash_pipeline.common.writing import cannot_write
from deephash_pipeline.training import TrainingInterrupted
from deephash_pipeline.tuning.space import TRIAL_SCORE, TuningParameters, nested, rounded, search_space
from deephash_pipeline.tuning.trial import Outcome, TrialJob, run_trial

logger = logging.getLogger(__name__)

STATES = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}
SECONDS_COLUMN = "seconds"


def search(job: TrialJob, storage: WorkingPlace) -> pd.DataFrame:
    """Make the trials of a method that `storage` does not hold yet.

    Trials of another configuration, other code, other data or another trunk that the file may hold stay there and count
    for nothing; a forced run forgets those of its own.

    Args:
        job: configuration that the trials have in common.
        storage: where the trials are kept.

    Returns:
        A row for each trial; see `trials_table`.

    Raises:
        TrainingInterrupted: SIGTERM or Ctrl-C; finished trials are stored.
        InputError: `storage` is damaged, or cannot be written.

    Example:
        `docs/results/fair-comparison.md` shows the trials of all methods on the digits.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return _searched(job, storage)
    except (DatabaseError, StorageInternalError) as error:
        # Optuna wraps what SQLite says of a disk that is full.
        reason = getattr(error if isinstance(error, DatabaseError) else error.__cause__, "orig", error)
        then = ", or delete it to start over"
        raise cannot_write(storage.path, reason, then) from error


def _searched(job: TrialJob, storage: WorkingPlace) -> pd.DataFrame:
    study = _opened(storage, f"{job.run.name} {configuration_digest(job, storage.provenance.get(CODE_DIGEST))}")
    tuning, space = job.tuning, search_space(job.method, job.tuning)
    seed = derive_seed(job.run.experiment.seed, "tuning", job.run.name)
    while (number := len(earlier := study.get_trials(deepcopy=False))) < tuning.trials:
        values = drawn(earlier, space, tuning, derive_seed(seed, number))
        try:
            outcome = run_trial(job, values, earlier)
        except TrainingInterrupted as interrupted:
            where = f"{job.run.name}: interrupted in trial {number + 1} of {tuning.trials}"
            raise TrainingInterrupted(f"{where}; the same command begins it anew", *interrupted.args[1:]) from None
        study.add_trial(_finished(outcome, values, space))
        logger.info("%s: trial %d of %d, %s", job.run.name, number + 1, tuning.trials, _in_words(outcome, values))
    return trials_table(study.get_trials()[: tuning.trials], space)


def _opened(storage: WorkingPlace, name: str) -> optuna.Study:
    storage.path.parent.mkdir(parents=True, exist_ok=True)
    url = f"sqlite:///{storage.path.resolve()}"
    open_study = partial(optuna.create_study, storage=url, study_name=name, direction="maximize", load_if_exists=True)
    forced = storage.provenance.get(FORCED)
    study = open_study()
    # A worker that was killed goes on with what its forced run has begun.
    if forced and study.user_attrs.get(FORCED) != forced:
        optuna.delete_study(study_name=name, storage=url)
        study = open_study()
        study.set_user_attr(FORCED, forced)
    return study


def drawn(
    earlier: Sequence[FrozenTrial], space: dict[str, FloatDistribution], tuning: TuningParameters, seed: int
) -> dict[str, float]:
    """Draw the values of one trial, knowing some earlier ones.

    Example:
        >>> space = {"training.learning_rate": FloatDistribution(0.001, 0.3, log=True)}
        >>> drawn([], space, TuningParameters(), seed=0) == drawn([], space, TuningParameters(), seed=0)
        True
    """
    # Optuna's generators take 32 bits.
    sampler = TPESampler(n_startup_trials=tuning.random_trials, seed=seed % 2**32)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.add_trials(earlier)
    return dict(study.ask({**space}).params)


def trials_table(trials: Sequence[FrozenTrial], space: dict[str, FloatDistribution]) -> pd.DataFrame:
    """Lay out trials.

    Returns:
        A row each: trial (from 1), state (``complete``, ``pruned``, ``failed``), the score after its last epoch (NaN if
        it ended none), epochs, seconds, and the values drawn, by dotted name.
    """
    names = {state: name for name, state in STATES.items()}
    rows = [
        {
            "trial": number,
            "state": names[trial.state],
            TRIAL_SCORE: trial.intermediate_values[max(trial.intermediate_values)]
            if trial.intermediate_values
            else np.nan,
            "epochs": len(trial.intermediate_values),
            SECONDS_COLUMN: trial.user_attrs[SECONDS_COLUMN],
            **trial.params,
        }
        for number, trial in enumerate(trials, start=1)
    ]
    return pd.DataFrame(rows, columns=["trial", "state", TRIAL_SCORE, "epochs", SECONDS_COLUMN, *space])


def configuration_digest(job: TrialJob, code: str | None = None) -> str:
    """Digest all that makes a search what it is, except how many trials it has."""
    space = search_space(job.method, job.tuning)
    described = {
        "code": code,
        "space": {name: (bounds.low, bounds.high) for name, bounds in space.items()},
        "experiment": job.run.experiment.model_dump(mode="json", exclude={"device"}),
        "cell": job.run.name,
        # Without what is searched, so that the winner may be put into the configuration.
        "method": {name: value for name, value in flatten("", job.method).items() if name not in space},
        "tuning": job.tuning.model_dump(mode="json", exclude={"trials"}),
    }
    digest = blake2b(json.dumps(described, sort_keys=True, default=str).encode(), digest_size=8)
    for images in (job.training_set, job.score.asking, job.score.searched):
        for array in (images.images, images.labels):
            digest.update(np.ascontiguousarray(array).data)
    for weights in (job.start.trunk, job.start.hash_layer, job.start.softmax):
        for name in sorted(weights):
            digest.update(weights[name].detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()


def _finished(outcome: Outcome, values: dict[str, float], space: dict[str, FloatDistribution]) -> FrozenTrial:
    state = STATES[outcome.state]
    return optuna.trial.create_trial(
        state=state,
        value=outcome.scores[max(outcome.scores)] if state is TrialState.COMPLETE else None,
        params=values,
        distributions=dict(space),
        intermediate_values=outcome.scores,
        user_attrs={SECONDS_COLUMN: round(outcome.seconds, 1)},
    )


def _in_words(outcome: Outcome, values: dict[str, float]) -> str:
    score = f" {outcome.scores[max(outcome.scores)]:.4f}" if outcome.scores else ""
    drawn_values = ", ".join(f"{name} {value:.2g}" for name, value in values.items())
    return f"{outcome.state}{score} in {outcome.seconds:.0f} s: {drawn_values}"


def best_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """Choose the best of each method's trials that were not stopped early; of equal ones the first.

    Args:
        trials: trials of several methods, as `trials_table` lays them out, with the column ``method``.

    Returns:
        A row for each method, in the order of the trials.

    Raises:
        InputError: no trial went on to its end. A method of which none did has no row, and a warning names it.

    Example:
        >>> states = ["complete", "pruned", "complete"]
        >>> trials = pd.DataFrame({"method": "csq", "state": states, TRIAL_SCORE: [0.7, 0.9, 0.8]})
        >>> best_trials(trials)[TRIAL_SCORE].tolist()
        [0.8]
    """
    complete = trials[trials["state"] == "complete"].sort_values(TRIAL_SCORE, ascending=False, kind="stable")
    best = complete.drop_duplicates("method").sort_index()
    if without := [method for method in trials["method"].unique() if method not in set(best["method"])]:
        message = f"{', '.join(without)}: no trial came to its end; set tuning.trials higher or other ranges"
        if best.empty:
            raise InputError(message)
        logger.warning(message)
    return best.reset_index(drop=True)


def tuned_parameters(best: pd.DataFrame) -> dict[str, Any]:
    """Write the winners as the group ``fine_tuning`` of a configuration, rounded to three digits.

    Args:
        best: winners, as `best_trials` gives them; searched parameters have dotted names.

    Example:
        >>> row = {"method": "dpsh", "trial": 1, "state": "complete", TRIAL_SCORE: 0.9}
        >>> row["training.learning_rate"] = 0.012345
        >>> tuned_parameters(pd.DataFrame([row]))
        {'fine_tuning': {'dpsh': {'training': {'learning_rate': 0.0123}}}}
    """
    searched = [str(name) for name in best.columns if "." in str(name)]
    tuned: dict[str, Mapping[str, Any]] = {}
    for row in best.to_dict("records"):
        values = {name: rounded(row[name]) for name in searched if pd.notna(row[name])}
        tuned[str(row["method"])] = nested(values)
    return {"fine_tuning": tuned}
