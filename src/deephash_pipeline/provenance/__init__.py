"""Provenance: what every artefact was made from and by, and whether it still is what would be made.

A manifest lies beside each artefact (``codes.npz.provenance.json``) and is written with it. This package knows no
Kedro; `deephash_pipeline.project.freshness` connects it to the graph of nodes.
"""

from deephash_pipeline.provenance.artefacts import FoundFiles, Source, StoredFile
from deephash_pipeline.provenance.code import code_version
from deephash_pipeline.provenance.digests import (
    content_digest,
    file_digest,
    files_digest,
    text_digest,
)
from deephash_pipeline.provenance.lineage import Artefact, Kind, Lineage, State, Step, summarised
from deephash_pipeline.provenance.lock import RunLock, sweep
from deephash_pipeline.provenance.manifest import (
    DamagedError,
    Manifest,
    Origin,
    describe,
    manifest_path,
    manifest_text,
    read_manifest,
    verify,
)
from deephash_pipeline.provenance.sources import sources

__all__ = [
    "Artefact",
    "DamagedError",
    "FoundFiles",
    "Kind",
    "Lineage",
    "Manifest",
    "Origin",
    "RunLock",
    "Source",
    "State",
    "Step",
    "StoredFile",
    "code_version",
    "content_digest",
    "describe",
    "file_digest",
    "files_digest",
    "manifest_path",
    "manifest_text",
    "read_manifest",
    "sources",
    "summarised",
    "sweep",
    "text_digest",
    "verify",
]
