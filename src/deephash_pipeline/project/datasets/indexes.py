"""An index of a cell's database: a folder, whose last file, the hasher, has the manifest."""

from pathlib import Path
from typing import Any

from deephash_pipeline.common.stores import refuse_remote
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.photographs import EncodedDatabase, ImageIndex, write_index
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.provenance.manifest import Manifest, manifest_path


class IndexDataset(AtomicFileDataset[Any]):
    """Saves `EncodedDatabase` as an index in the folder of `filepath`, and loads the `ImageIndex`, to be read.

    Codes, labels and pictures are written first and the hasher last, so an index whose making was broken off has no
    manifest. An index is changed where it lies, by ``deephash-pipeline index add`` or over HTTP; what was added stays
    when the same cell is saved again.

    Args:
        filepath: path of the hasher's file in the index's folder, relative to the project.
        metadata: metadata for Kedro-Viz (``layer``).
    """

    def __init__(self, filepath: str, metadata: dict[str, Any] | None = None) -> None:
        refuse_remote(filepath, "an index")
        super().__init__(filepath, metadata)

    def save(self, content: EncodedDatabase) -> None:
        """Write the index, and then the hasher with its manifest.

        Raises:
            InputError: another process writes the index.
        """
        manifest_path(self.filepath).unlink(missing_ok=True)
        write_index(self.filepath.parent, content)
        super().save(content)

    def check(self, path: Path | None = None) -> Manifest | None:
        """Compare the hasher with its manifest, and all segments of codes with their checksums.

        Raises:
            InputError: one is damaged.
        """
        manifest = super().check(path)
        HammingIndex.open(self.filepath.parent, read_only=True).close()
        return manifest

    def _read(self, path: Path) -> ImageIndex:
        return ImageIndex.open(path.parent, read_only=True)

    def _write(self, path: Path, content: EncodedDatabase) -> None:
        content.hasher.save(path)
