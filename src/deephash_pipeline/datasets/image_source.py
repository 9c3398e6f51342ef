"""The raw images of a benchmark, wherever they come from."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import sklearn

from deephash_pipeline.datasets.read_only import ReadOnlyDataset
from deephash_pipeline.errors import InputError
from deephash_pipeline.images.decoding.image_files import ImageFiles
from deephash_pipeline.images.sources.collection import ImageCollection
from deephash_pipeline.images.sources.registry import parse_source, read_source
from deephash_pipeline.provenance import files_digest, text_digest
from deephash_pipeline.stores import refuse_remote


class ImageSourceDataset(ReadOnlyDataset[ImageCollection]):
    """Reads the raw images that a `source` describes; a new benchmark is a new entry of this type, not new code.

    Args:
        filepath: folder of the raw files.
        source: fields of one of `deephash_pipeline.images.sources.registry`, chosen by ``kind``.
        working_folder: where arrays grow while image files are decoded; best on the disk of the finished arrays. By
            default ``data/02_intermediate/<last part of filepath>/decoded``.
        metadata: for Kedro-Viz.
    """

    written_by = "whoever gives the images, or the download"

    def __init__(
        self,
        filepath: str,
        source: dict[str, Any],
        working_folder: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        refuse_remote(filepath, "raw images of a run")
        super().__init__(filepath, metadata)
        self._working_folder = Path(working_folder or f"data/02_intermediate/{self._path.name}/decoded")
        self._source = parse_source(source)

    def load(self) -> ImageCollection:
        """Read every image, or list the files that `split_images` is to decode.

        Raises:
            InputError: missing files, by name.
        """
        return read_source(self._source, self._path, self._working_folder)

    @property
    def folder(self) -> Path:
        """The folder of the raw files."""
        return self._path

    def digest(self) -> str | None:
        """Digest the `source` and the names and contents of the files that it reads; None if there are none.

        Contents are read again only if a file has changed, appeared or vanished, see `files_digest`.
        """
        root, names = self._files()
        if not names:
            return None
        memory = self._working_folder.parent / "raw_images.verified"
        # Links whose content is not there are listed too, and will be found broken.
        there = [name for name in names if (root / name).is_file()]
        missing = "".join(f"\0{name}" for name in sorted(set(names) - set(there)))
        return text_digest(f"{self._source.model_dump_json()}\0{files_digest(root, there, memory)}{missing}")

    def _files(self) -> tuple[Path, list[str]]:
        if self._source.kind == "digits":
            root = Path(sklearn.__file__).parent / "datasets" / "data"
            return root, ["digits.csv.gz"]
        names = {path.relative_to(self._path).as_posix() for path in self._path.rglob("*") if path.is_file()}
        if self._source.kind in ("folder", "csv") and names:
            # What else lies in the folder is not read.
            with suppress(InputError):
                splits = read_source(self._source, self._path, self._working_folder).splits.values()
                files = [split.images for split in splits if isinstance(split.images, ImageFiles)]
                names = {name for listed in files for name in listed.names}
                names |= {self._source.file} if self._source.kind == "csv" else set()
        return self._path, sorted(names)

    def _exists(self) -> bool:
        fetched = self._source.kind == "digits" or getattr(self._source, "download", False)
        return fetched or self._path.is_dir()

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._path), "source": self._source}
