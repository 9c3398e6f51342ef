"""The raw images of a benchmark, wherever they come from."""

from pathlib import Path
from typing import Any

from deephash_pipeline.common.stores import refuse_remote
from deephash_pipeline.images.sources.collection import ImageCollection
from deephash_pipeline.images.sources.registry import parse_source, read_source
from deephash_pipeline.project.datasets.read_only import ReadOnlyDataset
from deephash_pipeline.provenance.digests import files_digest, text_digest


class ImageSourceDataset(ReadOnlyDataset[ImageCollection]):
    """Reads the raw images that a `source` describes; a new benchmark is a new entry of this type, not new code.

    Args:
        filepath: folder of the raw files.
        source: fields of one of `deephash_pipeline.images.sources.registry`, chosen by ``kind``.
        memory: file that remembers the digest of the raw files, by default beside the arrays of the benchmark:
            ``data/02_intermediate/<last part of filepath>/raw_images.verified``.
        metadata: for Kedro-Viz.
    """

    written_by = "whoever gives the images, or the download"

    def __init__(
        self,
        filepath: str,
        source: dict[str, Any],
        memory: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        refuse_remote(filepath, "raw images of a run")
        super().__init__(filepath, metadata)
        self._memory = Path(memory or f"data/02_intermediate/{self._path.name}/raw_images.verified")
        self.source = parse_source(source)

    def load(self) -> ImageCollection:
        """Read every image, or list the files that `split_images` is to decode.

        Raises:
            InputError: missing files, by name.
        """
        return read_source(self.source, self._path)

    @property
    def folder(self) -> Path:
        """The folder of the raw files."""
        return self._path

    def digest(self) -> str | None:
        """Digest the `source` and the names and contents of the files that it reads; None if there are none.

        Contents are read again only if a file has changed, appeared or vanished, see `files_digest`.
        """
        root, names = self.source.files(self._path)
        if not names:
            return None
        # Links whose content is not there are listed too, and will be found broken.
        there = [name for name in names if (root / name).is_file()]
        missing = "".join(f"\0{name}" for name in sorted(set(names) - set(there)))
        return text_digest(f"{self.source.model_dump_json()}\0{files_digest(root, there, self._memory)}{missing}")

    def _exists(self) -> bool:
        return self.source.is_there(self._path)

    def _describe(self) -> dict[str, Any]:
        return {"filepath": str(self._path), "source": self.source}
