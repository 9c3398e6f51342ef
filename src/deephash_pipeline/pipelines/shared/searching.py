"""Databases of the protocols: the codes and labels that queries search."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.pipelines.shared.bundles import Bundle
from deephash_pipeline.retrieval import CodeSets
from deephash_pipeline.retrieval.protocols import Protocol


class Sets(NamedTuple):
    """What the three sets have: images, uint8 (n, channels, height, width), features, float32 (n, dimension), labels.

    Labels are int64 of shape (n,), or uint8 of shape (n, classes).
    """

    query: NDArray[Any]
    training: NDArray[Any]
    validation: NDArray[Any]


LABEL_SETS = Bundle(Sets, ("query_labels", "training_labels", "validation_labels"))
Z_SETS = Bundle(Sets, ("query_z", "training_z", "validation_z"))


class SearchedDatabase(NamedTuple):
    """Packed codes, uint8 (items, bytes), and labels of what is searched."""

    codes: NDArray[np.uint8]
    labels: NDArray[Any]


def searched(protocol: Protocol, codes: CodeSets, labels: Sets) -> SearchedDatabase:
    """Put the sets that the queries search into one.

    Raises:
        InputError: the codes are of other images than the labels.
    """
    of_sets = Sets(codes.query, codes.database, codes.validation)
    if [*map(len, of_sets)] != [*map(len, labels)]:
        raise InputError("the codes are not those of the images here: encode them again")
    return SearchedDatabase(joined_sets(protocol, of_sets), joined_sets(protocol, labels))


def joined_sets(protocol: Protocol, sets: Sets) -> NDArray[Any]:
    """Put what the sets that the queries search have into one array."""
    return np.concatenate([getattr(sets, name) for name in protocol.database])


def finds_anything(query_labels: NDArray[Any], database_labels: NDArray[Any]) -> bool:
    """Say whether any query has a relevant image in a database."""
    if query_labels.ndim == 2:
        return bool((query_labels.any(axis=0) & database_labels.any(axis=0)).any())
    return bool(np.isin(query_labels, database_labels).any())


def searched_images(
    protocol: Protocol, training: NDArray[np.uint8], validation: NDArray[np.uint8]
) -> list[NDArray[np.uint8]]:
    """Give the images whose codes and labels are those of `searched`, in their order; none is read before its use."""
    sets = {"training": training, "validation": validation}
    return [image for name in protocol.database for image in np.asarray(sets[name])]
