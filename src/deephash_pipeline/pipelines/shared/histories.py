"""Training histories: whose they are."""

import pandas as pd

from deephash_pipeline.deephash.experiment import Run


def of_cell(history: pd.DataFrame, run: Run, stage: str) -> pd.DataFrame:
    """Add the columns `method`, `code_length` and `stage` to a table with a row for each epoch."""
    return history.assign(method=run.cell.method, code_length=run.cell.code_length, stage=stage)
