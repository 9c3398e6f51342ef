"""What the manifests of a run's artefacts say, for MLflow: digests as tags, and the raw images as a dataset."""

from typing import Any

from kedro.io import CatalogProtocol

from deephash_pipeline.datasets.atomic_file import AtomicFileDataset
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


def digest_tags(catalog: Catalog, name: str) -> dict[str, str]:
    """Give the digests of a dataset, of what it was made from, and of the raw images, as tags.

    Returns:
        ``digest.<dataset>`` -> digest; nothing for what has no manifest.
    """
    manifest = manifest_of(catalog, name)
    if manifest is None:
        return {}
    origin = manifest.origin
    made_from = {**origin.inputs, **{key: origin.ancestors[key] for key in (RAW_IMAGES,) if key in origin.ancestors}}
    return {f"{DIGEST}{key}": digest for key, digest in sorted({**made_from, name: manifest.digest}.items())}


def raw_images_digest(catalog: Catalog, name: str) -> str | None:
    """Give the digest of the raw images that a dataset came from; None if that is not known."""
    return digest_tags(catalog, name).get(f"{DIGEST}{RAW_IMAGES}")
