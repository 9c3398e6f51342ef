"""Beside the stages: the same number of trials for every method that trains the network."""

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import SHOWN_CODE_LENGTH
from deephash_pipeline.pipelines.grid import TUNED_METHODS, cells
from deephash_pipeline.pipelines.shared.bundles import Bundle, node
from deephash_pipeline.pipelines.shared.inputs import (
    PRE_TRAINED,
    TRAINING_SET_FILES,
    TRIAL_RUN,
    VALIDATION_SET,
    of_trained_cell,
)
from deephash_pipeline.pipelines.tuning.nodes import search_parameters
from deephash_pipeline.tuning.trial import TrialJob

JOB = Bundle(
    TrialJob, (TRAINING_SET_FILES, VALIDATION_SET, "params:fine_tuning", PRE_TRAINED, TRIAL_RUN, "params:tuning")
)


def create_pipeline() -> Pipeline:
    """Instantiate the template once for each method, at one code length.

    ::

        images, labels, {trunk, softmax}_weights, deephash_pretrained.b32.hash_layer, <cell>.study -> search
            -> <cell>.trials
    """
    template = Pipeline([node(search_parameters, [JOB, "params:protocol", "study"], "trials", "search")])
    grid = cells(*TUNED_METHODS, code_lengths=[SHOWN_CODE_LENGTH])
    return Pipeline([of_trained_cell(template, cell) for cell in grid])
