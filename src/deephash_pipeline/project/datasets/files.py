"""Files that other runs have left: whatever of them is there."""

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from kedro.io import AbstractDataset

from deephash_pipeline.common.stores import refuse_remote
from deephash_pipeline.project.datasets.read_only import ReadOnlyDataset


class FilesDataset(ReadOnlyDataset[dict[str, Any]]):
    """Reads every file of a folder that a pattern matches; none at all is no error, but an empty mapping.

    So a table can be made of the cells and the benchmarks that were run, without naming those that were not.

    Args:
        filepath: the folder, relative to the project.
        pattern: of the files below it, as in `pathlib.Path.glob`.
        dataset: entry of a catalog that reads one of them, without ``filepath``.
        tracked: whether what is read counts as that which a result was made from. Not so for files that the reader
            itself replaces.
        exclude: pattern of paths below the folder that are left out, as in `fnmatch.fnmatch`.
        metadata: for Kedro-Viz.
    """

    written_by = "the runs that make the files"

    def __init__(
        self,
        filepath: str,
        pattern: str,
        dataset: dict[str, Any],
        tracked: bool = True,
        exclude: str = "",
        metadata: dict[str, Any] | None = None,
    ) -> None:
        refuse_remote(filepath, "files that are found by a pattern")
        super().__init__(filepath, metadata)
        self._pattern = pattern
        self._dataset = dataset
        self._exclude = exclude
        self.tracked = tracked

    def load(self) -> dict[str, Any]:
        """Read them all.

        Returns:
            Path below the folder, such as ``itq/b48/metrics.json``, to content, in the order of the paths.
        """
        return {path.relative_to(self._path).as_posix(): self._one(path).load() for path in self.files()}

    def files(self) -> Iterator[Path]:
        """Yield the files that are there, in the order of their paths."""
        for path in sorted(self._path.glob(self._pattern)):
            if not fnmatch(path.relative_to(self._path).as_posix(), self._exclude):
                yield path

    @property
    def folder(self) -> Path:
        """The folder."""
        return self._path

    def _one(self, path: Path) -> AbstractDataset[Any, Any]:
        return AbstractDataset.from_config(path.name, {**self._dataset, "filepath": str(path)})

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._path), "pattern": self._pattern}
