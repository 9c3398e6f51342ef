"""Arrays and counts."""

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.retrieval import DistanceHistograms

from .atomic_file import AtomicFileDataset


class NumpyDataset(AtomicFileDataset[NDArray[Any]]):
    """An array in a ``.npy`` file.

    Args:
        filepath: where the file lies.
        mmap_mode: ``r`` maps the file into memory instead of reading it: for images and features.
        metadata: for Kedro-Viz.
    """

    def __init__(
        self, filepath: str, mmap_mode: Literal["r"] | None = None, metadata: dict[str, Any] | None = None
    ) -> None:
        super().__init__(filepath, metadata)
        self._mmap_mode = mmap_mode

    def _read(self, path: Path) -> NDArray[Any]:
        array: NDArray[Any] = np.load(path, mmap_mode=self._mmap_mode, allow_pickle=False)
        return array

    def _write(self, path: Path, content: NDArray[Any]) -> None:
        np.save(path, content, allow_pickle=False)


class HistogramsDataset(AtomicFileDataset[DistanceHistograms]):
    """Distance histograms of one cell in an ``.npz`` file, as int32 to halve it (a count is at most the database)."""

    def _read(self, path: Path) -> DistanceHistograms:
        with np.load(path, allow_pickle=False) as arrays:
            return DistanceHistograms(all=arrays["all"].astype(np.int64), relevant=arrays["relevant"].astype(np.int64))

    def _write(self, path: Path, content: DistanceHistograms) -> None:
        np.savez(path, all=content.all.astype(np.int32), relevant=content.relevant.astype(np.int32))
