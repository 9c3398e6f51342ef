"""Where a training keeps its checkpoints."""

import math
from pathlib import Path
from typing import Any

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import refuse_remote
from deephash_pipeline.project.datasets.read_only import ReadOnlyDataset
from deephash_pipeline.provenance import code_version
from deephash_pipeline.training import CheckpointFolder


class CheckpointsDataset(ReadOnlyDataset[CheckpointFolder]):
    """A folder of checkpoints: loading hands it to the training, which writes and reads it by itself.

    Args:
        filepath: of the folder, relative to the project.
        seconds_between: checkpoints are made no more often than this; 0 means at every step.
        metadata: for Kedro-Viz (``layer``).

    Raises:
        InputError: `seconds_between` is no number of seconds.
    """

    written_by = "the training that reads it"

    def __init__(self, filepath: str, seconds_between: float, metadata: dict[str, Any] | None = None) -> None:
        if (
            isinstance(seconds_between, bool)
            or not isinstance(seconds_between, int | float)
            or not 0 <= seconds_between < math.inf
        ):
            raise InputError(
                f"seconds_between_checkpoints is {seconds_between!r}: give a number of seconds, 0 for every step"
            )
        refuse_remote(filepath, "checkpoints")
        super().__init__(filepath, metadata)
        self._seconds_between = seconds_between

    def load(self) -> CheckpointFolder:
        """Hand over the folder; it need not exist."""
        return CheckpointFolder(self._path, self._seconds_between, code_version(Path.cwd()))

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._path), "seconds_between": self._seconds_between}
