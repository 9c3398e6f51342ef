"""What the manifest of another dataset says."""

from pathlib import Path
from typing import Any, NoReturn

from kedro.io import AbstractDataset, DatasetError

from deephash_pipeline.provenance import Origin, read_manifest
from deephash_pipeline.provenance.manifest import SUFFIX


class OriginDataset(AbstractDataset[NoReturn, Origin | None]):
    """Reads from a manifest what its file was made from and by; None if the file has no manifest.

    Args:
        filepath: of the manifest, relative to the project.
        metadata: for Kedro-Viz (``layer``).
    """

    def __init__(self, filepath: str, metadata: dict[str, Any] | None = None) -> None:
        self._path = Path(filepath)
        self._described = self._path.with_name(self._path.name.removesuffix(SUFFIX))
        self.metadata = metadata

    def load(self) -> Origin | None:
        """Read the manifest.

        Raises:
            InputError: it is damaged.
        """
        manifest = read_manifest(self._described)
        return manifest.origin if manifest else None

    def save(self, data: NoReturn) -> None:
        """Refuse: a manifest is written with its file.

        Raises:
            DatasetError: always.
        """
        raise DatasetError(f"{self._path} is written with the file that it describes, not by the catalog")

    def _exists(self) -> bool:
        return True

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._path)}
