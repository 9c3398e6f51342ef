"""Equal tuning: the same number of trials for every method, on the same trunk, judged by images that are no queries.

`space.search_space` says between which bounds a method's parameters are drawn, `study.search` makes the trials of one
method and stores each, `study.best_trials` and `study.tuned_parameters` choose the winners and write them as a
configuration.
"""

from deephash_pipeline.common.extras import required

required("optuna", "pipeline")
