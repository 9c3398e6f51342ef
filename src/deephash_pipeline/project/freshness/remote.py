"""An artefact in an object store, as the graph sees it."""

from dataclasses import dataclass
from pathlib import Path

from deephash_pipeline.project.datasets.remote_file import fetched
from deephash_pipeline.provenance import Kind, Lineage, Origin, State, StoredFile


@dataclass(frozen=True)
class RemoteFile:
    """A file with a manifest in an object store; what is said of it is said of the copy on this machine's disk.

    Attributes:
        address: of the file.
    """

    address: str

    @property
    def path(self) -> Path:
        """The address, to be shown."""
        return Path(self.address)

    def digest_now(self, lineage: Lineage) -> str:
        """Take it from the manifest."""
        copy = self._copy()
        return copy.digest_now(lineage) if copy else "none"

    def origin(self) -> Origin | None:
        """Read it from the manifest."""
        copy = self._copy()
        return copy.origin() if copy else None

    def state(self, lineage: Lineage, name: str) -> State:
        """Compare file, manifest and step."""
        copy = self._copy()
        return copy.state(lineage, name) if copy else State(Kind.MISSING, "is not there")

    def _copy(self) -> StoredFile | None:
        try:
            return StoredFile(fetched(self.address))
        except FileNotFoundError:
            return None
