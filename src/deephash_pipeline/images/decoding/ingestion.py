"""Decode the splits of a benchmark: broken images are left out and listed, images in two splits are reported."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.decoding.decoded_array import DecodedArray, digest
from deephash_pipeline.images.decoding.image_files import ImageFiles
from deephash_pipeline.images.sources.collection import ImageSet, class_sizes

logger = logging.getLogger(__name__)


class BrokenImage(NamedTuple):
    """An image that is left out: its split, its id and why it could not be decoded.

    Example:
        >>> BrokenImage("training", "cat/2.png", "the file is empty").id
        'cat/2.png'
    """

    split: str
    id: str
    reason: str


def decode_splits(
    splits: dict[str, ImageSet],
    class_names: Sequence[str],
    broken_share_limit: float,
    folder: Path,
    provenance: Mapping[str, str] = MappingProxyType({}),
) -> tuple[dict[str, ImageSet], list[BrokenImage]]:
    """Decode every split that is still files; arrays pass as they are.

    The working files stay: what one call has decoded, interrupted or not, the next one with the same files takes up.

    Args:
        splits: "training", "validation" and "query".
        class_names: names of the labels.
        broken_share_limit: the largest share of all files that may be broken.
        folder: folder where the arrays of listed files grow while they are decoded.
        provenance: what a run is made by, as of a `WorkingPlace`: what was decoded by another is decoded again.

    Returns:
        The splits as arrays and memory maps, and the broken images, which are in none of them.

    Raises:
        InputError: if more files are broken, or a class has no image left to train from, or there is no query left.

    Example:
        >>> pixels, labels = np.arange(256, dtype=np.uint8).reshape(4, 1, 8, 8), np.array([0, 1])
        >>> halves = {"training": pixels[:2], "query": pixels[2:]}
        >>> splits = {name: ImageSet(half, labels, [f"{name}/0", f"{name}/1"]) for name, half in halves.items()}
        >>> decoded, broken = decode_splits(splits, ["cat", "dog"], 0.01, Path("decoded"))
        >>> broken
        []
    """
    files = sum(len(split) for split in splits.values() if isinstance(split.images, ImageFiles))
    decoded: dict[str, ImageSet] = {}
    digests: dict[str, list[bytes]] = {}
    broken: list[BrokenImage] = []
    for name, split in splits.items():
        if not isinstance(split.images, ImageFiles):
            decoded[name], digests[name] = split, [digest(image.tobytes()) for image in split.images]
            continue
        working = DecodedArray(split.images, name, folder, provenance)
        for row, reason in working.decode():
            broken.append(BrokenImage(name, split.ids[row], reason))
            if len(broken) / files > broken_share_limit:
                raise InputError(
                    f"more than {100 * broken_share_limit:g}% of {files} image files are broken, the first is "
                    f"{split.images.root / broken[0].id} ({broken[0].reason}): mend or remove them, or raise "
                    "data_ingestion.broken_share_limit to have them listed and left out."
                )
        whole = working.whole_rows()
        decoded[name] = ImageSet(working.whole_images(), split.labels[whole], [split.ids[row] for row in whole])
        digests[name] = [working.digests[row] for row in whole]
    before, after = (class_sizes(whole["training"].labels, len(class_names)) for whole in (splits, decoded))
    lost = np.flatnonzero((before > 0) & (after == 0))
    if lost.size:
        raise InputError(f"all training images of the class {class_names[lost[0]]!r} are broken: mend or replace them.")
    if not len(decoded["query"]):
        raise InputError("all images of the split 'query' are broken: mend or replace them.")
    _report_shared_images(decoded, digests)
    return decoded, broken


def _report_shared_images(splits: dict[str, ImageSet], digests: dict[str, list[bytes]]) -> None:
    """Warn of images that are in two splits under different ids."""
    seen: dict[bytes, tuple[str, str]] = {}
    pairs = []
    for name, split in splits.items():
        here = list(zip(digests[name], split.ids, strict=True))
        pairs += [(*seen[known], image_id, name) for known, image_id in here if known in seen]
        for known, image_id in here:
            seen.setdefault(known, (image_id, name))
    if pairs:
        logger.warning(
            "images with the same pixels as one of another split: %d, the first are %s (%s) and %s (%s); "
            "splits must not share images, remove one of each two",
            len(pairs),
            *pairs[0],
        )
