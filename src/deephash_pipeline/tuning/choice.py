"""From the trials of all methods to the winners, and to a configuration with them."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.tuning.space import SCORE, nested, rounded


def best_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """Choose the best of each method's trials that were not stopped early; of equal ones the first.

    Args:
        trials: of several methods, as `trials_table` lays them out, with the column ``method``.

    Returns:
        A row for each method, in the order of the trials.

    Raises:
        InputError: no trial of a method went on to its end.

    Example:
        >>> states = ["complete", "pruned", "complete"]
        >>> trials = pd.DataFrame({"method": "csq", "state": states, SCORE: [0.7, 0.9, 0.8]})
        >>> best_trials(trials)[SCORE].tolist()
        [0.8]
    """
    best = []
    for method, own in trials.groupby("method", sort=False):
        complete = own[own["state"] == "complete"]
        if complete.empty:
            raise InputError(f"{method}: no trial came to its end; set tuning.trials higher or other ranges")
        best.append(complete.sort_values(SCORE, ascending=False, kind="stable").head(1))
    return pd.concat(best, ignore_index=True)


def tuned_parameters(trials: pd.DataFrame) -> dict[str, Any]:
    """Write the winners as the group ``fine_tuning`` of a configuration, rounded to three digits.

    Args:
        trials: as for `best_trials`; searched parameters have dotted names.

    Example:
        >>> row = {"method": "dpsh", "trial": 1, "state": "complete", SCORE: 0.9, "training.learning_rate": 0.012345}
        >>> tuned_parameters(pd.DataFrame([row]))
        {'fine_tuning': {'dpsh': {'training': {'learning_rate': 0.0123}}}}
    """
    searched = [str(name) for name in trials.columns if "." in str(name)]
    tuned: dict[str, Mapping[str, Any]] = {}
    for row in best_trials(trials).to_dict("records"):
        values = {name: rounded(row[name]) for name in searched if pd.notna(row[name])}
        tuned[str(row["method"])] = nested(values)
    return {"fine_tuning": tuned}
