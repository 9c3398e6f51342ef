"""The raw images of a benchmark, wherever they come from."""

from pathlib import Path
from typing import Any, NoReturn

from kedro.io import AbstractDataset, DatasetError

from deephash_pipeline.images.sources.collection import ImageCollection
from deephash_pipeline.images.sources.registry import parse_source, read_source


class ImageSourceDataset(AbstractDataset[NoReturn, ImageCollection]):
    """Reads the raw images that a `source` describes; a new benchmark is a new entry of this type, not new code.

    Args:
        filepath: folder of the raw files.
        source: fields of one of `deephash_pipeline.images.sources.registry`, chosen by ``kind``.
        working_folder: where arrays grow while image files are decoded; best on the disk of the finished arrays. By
            default ``data/02_intermediate/<last part of filepath>/decoded``.
        metadata: for Kedro-Viz.
    """

    def __init__(
        self,
        filepath: str,
        source: dict[str, Any],
        working_folder: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        self._path = Path(filepath)
        self._working_folder = Path(working_folder or f"data/02_intermediate/{self._path.name}/decoded")
        self._source = parse_source(source)
        self.metadata = metadata

    def load(self) -> ImageCollection:
        """Read every image, or list the files that `split_images` is to decode.

        Raises:
            InputError: missing files, by name.
        """
        return read_source(self._source, self._path, self._working_folder)

    def save(self, data: NoReturn) -> None:
        """Raw images are not ours to write."""
        raise DatasetError("raw images are read only")

    def _exists(self) -> bool:
        fetched = self._source.kind == "digits" or getattr(self._source, "download", False)
        return fetched or self._path.is_dir()

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._path), "source": self._source}
