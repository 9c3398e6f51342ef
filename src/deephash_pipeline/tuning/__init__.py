"""Equal tuning: the same number of trials for every method, on the same trunk, judged by images that are no queries.

`search_space` says between which bounds a method's parameters are drawn, `search` makes the trials of one method and
stores each, `best_trials` and `tuned_parameters` choose the winners and write them as a configuration.
"""

from deephash_pipeline.common.extras import missing

try:
    from deephash_pipeline.tuning.choice import best_trials, tuned_parameters
    from deephash_pipeline.tuning.objective import HeldOutScore, halves
    from deephash_pipeline.tuning.space import SCORE, TuningParameters, search_space, with_values
    from deephash_pipeline.tuning.study import search, trials_table
    from deephash_pipeline.tuning.trial import Outcome, TrialJob, run_trial
except ModuleNotFoundError as error:
    raise missing(error, "pipeline") from error

__all__ = [
    "SCORE",
    "HeldOutScore",
    "Outcome",
    "TrialJob",
    "TuningParameters",
    "best_trials",
    "halves",
    "run_trial",
    "search",
    "search_space",
    "trials_table",
    "tuned_parameters",
    "with_values",
]
