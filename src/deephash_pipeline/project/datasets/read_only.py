"""What the catalog reads and does not write."""

from pathlib import Path
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

from kedro.io import AbstractDataset, DatasetError

from deephash_pipeline.provenance import Origin
from deephash_pipeline.provenance.manifest import SUFFIX, read_manifest

Content = TypeVar("Content")


class ReadOnlyDataset(AbstractDataset[NoReturn, Content], Generic[Content]):
    """A dataset that is no node's output, and counts as there whether or not its file is.

    Args:
        filepath: of the file or folder, relative to the project.
        metadata: for Kedro-Viz (``layer``).

    Attributes:
        written_by: who writes it.
    """

    written_by: ClassVar[str]

    def __init__(self, filepath: str, metadata: dict[str, Any] | None = None) -> None:
        self._path = Path(filepath)
        self.metadata = metadata

    def save(self, data: NoReturn) -> None:
        """Refuse.

        Raises:
            DatasetError: always.
        """
        raise DatasetError(f"{self._path} is read only to the catalog: it is written by {self.written_by}")

    def _exists(self) -> bool:
        return True

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._path)}


class OriginDataset(ReadOnlyDataset[Origin | None]):
    """Reads from a manifest what its file was made from and by; None if the file has no manifest."""

    written_by = "whoever writes the file that it describes"

    def load(self) -> Origin | None:
        """Read the manifest.

        Raises:
            InputError: it is damaged.
        """
        manifest = read_manifest(self._path.with_name(self._path.name.removesuffix(SUFFIX)))
        return manifest.origin if manifest else None


class PlaceDataset(ReadOnlyDataset[Path]):
    """The study of a search, or the arrays that grow while images are decoded: loading gives the path."""

    written_by = "the node that reads it"

    def load(self) -> Path:
        """Give the path; nothing need be there."""
        return self._path
