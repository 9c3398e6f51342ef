"""What the manifest of another dataset says."""

from deephash_pipeline.project.datasets.read_only import ReadOnlyDataset
from deephash_pipeline.provenance import Origin
from deephash_pipeline.provenance.manifest import SUFFIX, read_manifest


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
