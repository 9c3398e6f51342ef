"""The common part of all datasets that are one local file."""

import os
from abc import abstractmethod
from pathlib import Path
from typing import Any, Generic, TypeVar

from kedro.io import AbstractDataset, DatasetError

Content = TypeVar("Content")


class AtomicFileDataset(AbstractDataset[Content, Content], Generic[Content]):
    """A file that is written under a temporary name, flushed to disk and then renamed.

    A subclass says how to read and write one file; a run killed while writing leaves the former file, or none.

    Args:
        filepath: where the file lies, relative to the project.
        metadata: for Kedro-Viz (``layer``).
    """

    def __init__(self, filepath: str, metadata: dict[str, Any] | None = None) -> None:
        self._path = Path(filepath)
        self.metadata = metadata

    @abstractmethod
    def _read(self, path: Path) -> Content:
        """Read the whole content from `path`."""

    @abstractmethod
    def _write(self, path: Path, content: Content) -> None:
        """Write the whole content to `path`."""

    def load(self) -> Content:
        """Read the file.

        Raises:
            DatasetError: the file is not there; the message says what makes it.
        """
        if not self._exists():
            raise DatasetError(
                f"{self._path} is not there: run the stage that makes it, or `kedro run --pipelines=full`"
            )
        return self._read(self._path)

    def save(self, content: Content) -> None:
        """Write the file under a temporary name and rename it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(f".{self._path.stem}.{os.getpid()}{self._path.suffix}")
        # What a killed process of the same number has left may be a link, through which another file would be written.
        temporary.unlink(missing_ok=True)
        try:
            self._write(temporary, content)
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.replace(self._path)
        finally:
            temporary.unlink(missing_ok=True)

    def _exists(self) -> bool:
        return self._path.is_file()

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._path)}
