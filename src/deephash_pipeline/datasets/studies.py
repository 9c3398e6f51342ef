"""Where the trials of a search are stored."""

from pathlib import Path
from typing import Any, NoReturn

from kedro.io import AbstractDataset, DatasetError


class StudyDataset(AbstractDataset[Any, Path]):
    """An SQLite file of Optuna: loading gives its path to the search, which writes and reads it by itself.

    Args:
        filepath: of the file, relative to the project.
        metadata: for Kedro-Viz (``layer``).
    """

    def __init__(self, filepath: str, metadata: dict[str, Any] | None = None) -> None:
        self._path = Path(filepath)
        self.metadata = metadata

    def load(self) -> Path:
        """Give the path; the file need not exist."""
        return self._path

    def save(self, data: Any) -> NoReturn:
        """Refuse: no node has a study as its output.

        Raises:
            DatasetError: always.
        """
        raise DatasetError(f"{self._path} is written by the search that reads it, not by the catalog")

    def _exists(self) -> bool:
        return True

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._path)}
