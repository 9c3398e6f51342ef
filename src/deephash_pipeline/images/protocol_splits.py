"""The sets of a benchmark by its protocol: drawn by `data_ingestion`'s parameters, or as the protocol fixes them."""

import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.images.decoding.image_files import ImageFiles
from deephash_pipeline.images.sources.collection import (
    ImageCollection,
    ImageSet,
    check_distinct_ids,
    check_no_empty_class,
    require_single_labels,
)
from deephash_pipeline.images.splits import SplitParameters, split_collection, stratified_draw
from deephash_pipeline.retrieval.protocols import Protocol


def split_by_protocol(
    collection: ImageCollection, parameters: SplitParameters, seed: int, protocol: Protocol
) -> dict[str, ImageSet]:
    """Make the three sets of a benchmark; no image is in two of them.

    Args:
        collection: collection of the source.
        parameters: parameters of the draws; where the protocol fixes the sets they stay at their defaults.
        seed: number that decides the draws.
        protocol: protocol that the codes will be evaluated by.

    Returns:
        "training", "validation" (possibly of no image) and "query".

    Raises:
        InputError: parameters or images that do not fit the protocol, and what `split_collection` raises.

    Example:
        >>> from deephash_pipeline.images.sources.digits import read_digits
        >>> from deephash_pipeline.retrieval.protocols import PROTOCOLS
        >>> split_by_protocol(read_digits(8), SplitParameters(query_count=500), 42, PROTOCOLS["held_out"])
        Traceback (most recent call last):
        deephash_pipeline.common.errors.InputError: protocol held_out searches validation images, ...
    """
    _check_parameters(parameters, protocol)
    if protocol.pooled:
        splits = _drawn_from_all(collection, seed, protocol)
    else:
        splits = split_collection(collection, parameters, seed)
    for name, size in protocol.sizes.items():
        if len(splits[name]) != size:
            raise InputError(
                f"protocol {protocol.name} has {size:,} images in the set {name!r}, and here are "
                f"{len(splits[name]):,}: bring its images, or set protocol to another"
            )
    if "validation" in protocol.database and not len(splits["validation"]):
        raise InputError(
            f"protocol {protocol.name} searches validation images, and there are none: "
            "set data_ingestion.validation_share"
        )
    return splits


def _check_parameters(parameters: SplitParameters, protocol: Protocol) -> None:
    if protocol.unseen and not parameters.unseen_classes:
        raise InputError(f"protocol {protocol.name} has classes that take no part in training: set unseen_classes")
    if parameters.unseen_classes and not protocol.unseen:
        raise InputError(
            f"with unseen_classes no query has anything to find by protocol {protocol.name}: set protocol to unseen"
        )
    if protocol.sizes:
        own = SplitParameters.model_fields
        changed = [name for name in own if getattr(parameters, name) != own[name].default]
        if changed:
            raise InputError(f"protocol {protocol.name} fixes its sets: remove data_ingestion.{changed[0]}")


def _drawn_from_all(collection: ImageCollection, seed: int, protocol: Protocol) -> dict[str, ImageSet]:
    """Draw queries, then training images, class by class, from all images; what is left is "validation"."""
    together = _joined(collection)
    require_single_labels(together.labels, f"protocol {protocol.name}")
    wanted = sum(protocol.sizes.values())
    if len(together) != wanted:
        raise InputError(
            f"protocol {protocol.name} divides {wanted:,} images, and here are {len(together):,}: bring its images, or "
            "set protocol to another"
        )
    splits, left = {}, np.arange(len(together))
    for name in ("query", "training"):
        drawn = stratified_draw(together.labels[left], protocol.sizes[name], derive_seed(seed, name))
        splits[name] = together.take(left[drawn])
        left = np.delete(left, drawn)
    splits["validation"] = together.take(left)
    check_distinct_ids(splits)
    check_no_empty_class("training", splits["training"].labels, collection.class_names)
    return splits


def _joined(collection: ImageCollection) -> ImageSet:
    """Put the images of all splits of a source into one set."""
    sets = list(collection.splits.values())
    files = [each.images for each in sets if isinstance(each.images, ImageFiles)]
    labels = np.concatenate([each.labels for each in sets])
    ids = [name for each in sets for name in each.ids]
    if len(files) == len(sets):
        return ImageSet(files[0].of([name for each in files for name in each.names]), labels, ids)
    return ImageSet(np.concatenate([each.images for each in sets]), labels, ids)
