"""Features that an index keeps of files that are as they were when it computed them."""

from collections.abc import Set
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.stores import stamp_of
from deephash_pipeline.deephash import FeatureExtractor, ImageHasher
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.hamming.replacing import PICTURE
from deephash_pipeline.hashing.srh import unit_length_rows
from deephash_pipeline.photographs.changes import STAMP
from deephash_pipeline.photographs.index import ImageIndex

KNOWN_AT_A_TIME = 1024


def known_features(images: ImageIndex, network: FeatureExtractor, wanted: Set[Path]) -> dict[Path, NDArray[np.float16]]:
    """Give those of some files, of unit length, that an index has of this network.

    A file is as it was if its size and time of change are; pictures in the index's folder stay as they are.

    Args:
        images: the index.
        network: network whose features are wanted.
        wanted: paths of files, without links.

    Returns:
        Features float16 (dimension,) by path; none of an index without features or of another network.
    """
    index, hasher, known = images.index, images.hasher, {}
    if not (isinstance(index, HammingIndex) and index.features and isinstance(hasher, ImageHasher)):
        return {}
    if not hasher.extractor.is_same(network):
        return {}
    for _, items, features in index.batches(KNOWN_AT_A_TIME):
        for item, z in zip(items, unit_length_rows(features).astype(np.float16), strict=True):
            path = images.path_of(item.metadata)
            if path is None or (path := path.resolve()) not in wanted:
                continue
            if PICTURE.fullmatch(item.metadata["path"]) or item.metadata.get(STAMP) == stamp_of(path):
                known[path] = z
    return known
