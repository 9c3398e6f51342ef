"""What the manifests of a run's artefacts say, for MLflow: parameters, digests as tags, raw images as a dataset."""

from typing import Any, NamedTuple

from kedro.io import CatalogProtocol

from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.project.tracking.description import flatten
from deephash_pipeline.provenance import DamagedError, Manifest, read_manifest

Catalog = CatalogProtocol[Any, Any]

DIGEST = "digest."
RAW_IMAGES = "raw_images"


def manifest_of(catalog: Catalog, name: str) -> Manifest | None:
    """Read the manifest of a dataset; None if it has none that can be read."""
    dataset = catalog.get(name) if name in catalog else None
    try:
        return read_manifest(dataset.filepath) if isinstance(dataset, AtomicFileDataset) else None
    except DamagedError:
        return None


class Facts(NamedTuple):
    """What the manifest of a dataset says: tags of digests, and parameters, as texts; nothing without a manifest."""

    tags: dict[str, str]
    parameters: dict[str, str]


def facts_of(catalog: Catalog, name: str) -> Facts:
    """Give the digests of a dataset, of what it was made from, and of the raw images, and all parameters behind it.

    Returns:
        Tags ``digest.<dataset>`` -> digest; parameters by dotted names.
    """
    manifest = manifest_of(catalog, name)
    if manifest is None:
        return Facts({}, {})
    origin = manifest.origin
    made_from = {**origin.inputs, **{key: origin.ancestors[key] for key in (RAW_IMAGES,) if key in origin.ancestors}}
    digests = {**made_from, name: manifest.digest}
    # Which cell it is, the run says itself.
    known = {key: value for key, value in origin.known_parameters.items() if not key.startswith("cells.")}
    return Facts({f"{DIGEST}{key}": digests[key] for key in sorted(digests)}, flatten("", known))


def raw_images_digest(catalog: Catalog, name: str) -> str | None:
    """Give the digest of the raw images that a dataset came from; None if that is not known."""
    return facts_of(catalog, name).tags.get(f"{DIGEST}{RAW_IMAGES}")
