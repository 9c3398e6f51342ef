"""The trials of all methods in one table, and the winners."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.pipelines.grid import METHODS
from deephash_pipeline.tuning.study import best_trials, tuned_parameters


def collect_trials(found: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Join the trials of the methods that were searched.

    Args:
        found: ``<method>/b<bits>/trials.csv`` to the trials of a method.

    Returns:
        All trials in the order of the methods; the best of each; and these as a configuration.

    Raises:
        InputError: there are no trials.
    """
    own = {path.partition("/")[0]: trials for path, trials in found.items()}
    searched = [own[method] for method in METHODS if method in own]
    if not searched:
        raise InputError("there are no trials: first give this command with `--pipelines=tuning`, which makes them")
    trials = pd.concat(searched, ignore_index=True)
    best = best_trials(trials)
    return trials, best, tuned_parameters(best)
