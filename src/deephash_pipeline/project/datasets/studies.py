"""Where the trials of a search are stored."""

from pathlib import Path

from deephash_pipeline.project.datasets.read_only import ReadOnlyDataset


class StudyDataset(ReadOnlyDataset[Path]):
    """An SQLite file of Optuna: loading gives its path to the search, which writes and reads it by itself."""

    written_by = "the search that reads it"

    def load(self) -> Path:
        """Give the path; the file need not exist."""
        return self._path
