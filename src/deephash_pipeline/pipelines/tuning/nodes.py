"""A search of one method's parameters."""

import pandas as pd

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.working_place import WorkingPlace
from deephash_pipeline.retrieval.protocols import require_protocol
from deephash_pipeline.tuning.study import search
from deephash_pipeline.tuning.trial import TrialJob


def search_parameters(job: TrialJob, protocol: str, study: WorkingPlace) -> pd.DataFrame:
    """Make the trials of a cell's method that its study lacks; returns a row for each trial.

    Raises:
        InputError: the protocol searches the validation images, which trials are judged by.
    """
    if "validation" in require_protocol(protocol).database:
        raise InputError(
            f"tuning judges by validation images, and protocol {protocol} searches them: tune by protocol paper, and "
            "carry the winners over"
        )
    trials = search(job, study)
    trials.insert(0, "method", job.run.cell.method)
    trials.insert(1, "code_length", job.run.code_length)
    return trials
