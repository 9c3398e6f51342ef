"""Files and folders that a node writes and reads by itself."""

from pathlib import Path

from deephash_pipeline.project.datasets.read_only import ReadOnlyDataset


class PlaceDataset(ReadOnlyDataset[Path]):
    """The study of a search, or the arrays that grow while images are decoded: loading gives the path."""

    written_by = "the node that reads it"

    def load(self) -> Path:
        """Give the path; nothing need be there."""
        return self._path
