"""An index as the graph sees it: the file with the manifest, and the codes beside it."""

from dataclasses import dataclass

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.provenance import Kind, Lineage, State, StoredFile
from deephash_pipeline.search import HammingIndex


@dataclass(frozen=True)
class StoredIndex(StoredFile):
    """The hasher of an index, which was written last; codes and ids beside it have checksums of their own."""

    def state(self, lineage: Lineage, name: str) -> State:
        """Compare the hasher with its manifest and the step, and all segments of codes with their checksums."""
        state = super().state(lineage, name)
        if state.kind in (Kind.FRESH, Kind.STALE):
            try:
                HammingIndex.open(self.path.parent, read_only=True).close()
            except InputError as error:
                return State(Kind.DAMAGED, f"is damaged ({error})")
        return state
