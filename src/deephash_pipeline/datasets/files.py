"""Files that other runs have left: whatever of them is there."""

from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from kedro.io import AbstractDataset, DatasetError


class FilesDataset(AbstractDataset[NoReturn, dict[str, Any]]):
    """Reads every file of a folder that a pattern matches; none at all is no error, but an empty mapping.

    So a table can be made of the cells and the benchmarks that were run, without naming those that were not.

    Args:
        filepath: the folder, relative to the project.
        pattern: of the files below it, as in `pathlib.Path.glob`.
        dataset: class that reads one of them, with its module.
        metadata: for Kedro-Viz.
    """

    def __init__(self, filepath: str, pattern: str, dataset: str, metadata: dict[str, Any] | None = None) -> None:
        self._path = Path(filepath)
        self._pattern = pattern
        module, _, name = dataset.rpartition(".")
        self._dataset = getattr(import_module(module), name)
        self.metadata = metadata

    def load(self) -> dict[str, Any]:
        """Read them all.

        Returns:
            Path below the folder, such as ``itq/b48/metrics.json``, to content, in the order of the paths.
        """
        return {
            path.relative_to(self._path).as_posix(): self._dataset(str(path)).load()
            for path in sorted(self._path.glob(self._pattern))
        }

    def save(self, data: NoReturn) -> None:
        """Refuse: the runs that make the files write them.

        Raises:
            DatasetError: always.
        """
        raise DatasetError(f"{self._path}/{self._pattern} is read only")

    def _exists(self) -> bool:
        return True

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._path), "pattern": self._pattern}
