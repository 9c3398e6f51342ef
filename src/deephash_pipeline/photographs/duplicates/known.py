"""Features that an index keeps of files that are as they were when it computed them."""

from collections.abc import Callable, Set
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.stores import stamp_of
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.hamming.index_folder import HASHER, PICTURE
from deephash_pipeline.hashing.srh import unit_length_rows
from deephash_pipeline.photographs.changes import STAMP
from deephash_pipeline.photographs.duplicates.network import Network
from deephash_pipeline.photographs.index import ImageIndex
from deephash_pipeline.provenance import content_digest

if TYPE_CHECKING:
    from deephash_pipeline.deephash import FeatureExtractor

KNOWN_AT_A_TIME = 1024


def made_by(images: ImageIndex, extractor: Callable[[], "FeatureExtractor"]) -> str:
    """Name the hasher of an index and a network; empty where one of them has no name."""
    if images.folder is None or not isinstance(extractor, Network):
        return ""
    return f"{content_digest(images.folder / HASHER)} {extractor.name}"


def has_features_of(images: ImageIndex, network: "FeatureExtractor") -> bool:
    """Tell whether the features that an index keeps, if any, are those of a network."""
    if not (isinstance(images.index, HammingIndex) and images.index.features):
        return False
    from deephash_pipeline.deephash import ImageHasher  # noqa: PLC0415 - who knows it already does without PyTorch

    hasher = images.hasher
    if not isinstance(hasher, ImageHasher):
        if images.folder is None:
            return False
        # A model of ONNX has no weights to compare.
        hasher = ImageHasher.load(images.folder / HASHER, "cpu")
    return hasher.extractor.is_same(network)


def known_features(images: ImageIndex, wanted: Set[Path]) -> dict[Path, NDArray[np.float16]]:
    """Give the features, of unit length, that an index keeps of some files.

    A file is as it was if its size and time of change are; pictures in the index's folder stay as they are.

    Args:
        images: the index, which keeps features.
        wanted: paths of files, without links.

    Returns:
        Features float16 (dimension,) by path.
    """
    known = {}
    for _, items, features in images._own().batches(KNOWN_AT_A_TIME):
        for item, z in zip(items, unit_length_rows(features).astype(np.float16), strict=True):
            path = images.path_of(item.metadata)
            if path is None or (path := path.resolve()) not in wanted:
                continue
            if PICTURE.fullmatch(item.metadata["path"]) or item.metadata.get(STAMP) == stamp_of(path):
                known[path] = z
    return known
