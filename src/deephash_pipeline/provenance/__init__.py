"""Provenance: what every artefact was made from and by, and whether it still is what would be made.

A manifest lies beside each artefact (``codes.npz.provenance.json``) and is written with it. This package knows no
Kedro; `deephash_pipeline.project.freshness` connects it to the graph of nodes.
"""

from deephash_pipeline.provenance.code import code_version
from deephash_pipeline.provenance.digests import content_digest
from deephash_pipeline.provenance.manifest import Origin

__all__ = ["Origin", "code_version", "content_digest"]
