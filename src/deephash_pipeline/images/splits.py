"""Training, validation and query images of a benchmark; the queries search the training images."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt, model_validator

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.parameters import Parameters
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.images.sources.collection import (
    ImageCollection,
    ImageSet,
    check_distinct_ids,
    check_no_empty_class,
    class_sizes,
    require_single_labels,
)

logger = logging.getLogger(__name__)


class SplitParameters(Parameters):
    """How to split a collection.

    Attributes:
        query_count: number of queries drawn, class by class (where images have several labels, at random), where the
            source has no queries of its own; else None.
        training_count: the first so many training images train and the rest validates (MNIST: 50000).
        validation_share: share of the training images drawn, class by class, to validate with, where `training_count`
            is None.
        unseen_classes: classes that take no part in training, by name or, drawn from the seed, by number; 0 for none.
            Their queries then search the other images of the same classes, which are the validation set.

    Example:
        >>> SplitParameters(query_count=1000, validation_share=0.1).unseen_classes
        0
    """

    query_count: int | None = Field(default=None, ge=1)
    training_count: int | None = Field(default=None, ge=1)
    validation_share: float = Field(default=0.0, ge=0, lt=1)
    unseen_classes: NonNegativeInt | tuple[str, ...] = 0

    @model_validator(mode="after")
    def _one_way_to_validate(self) -> "SplitParameters":
        if self.training_count is not None and self.validation_share > 0:
            raise ValueError("give training_count or validation_share, not both")
        if self.unseen_classes and (self.training_count is not None or self.validation_share > 0):
            raise ValueError("with unseen_classes their images are the validation set: drop training_count and share")
        return self


def split_collection(collection: ImageCollection, parameters: SplitParameters, seed: int) -> dict[str, ImageSet]:
    """Make the three splits of a benchmark; no image is in two of them.

    Args:
        collection: collection with the split "all", or with "training" and "query" (a "validation" of its own is kept).
        parameters: numbers of the draw, see `SplitParameters`.
        seed: seed of the draws; one for the queries and one for the validation images are derived from it.

    Returns:
        "training", "validation" (possibly of no image) and "query". Labels are indices into `split_class_names`.

    Raises:
        InputError: if fewer images are there than asked for, the parameters do not fit the collection, a class is left
            without training images, or an id is in two splits.

    Example:
        >>> from deephash_pipeline.images.sources.digits import read_digits
        >>> splits = split_collection(read_digits(8), SplitParameters(query_count=500), seed=42)
        >>> {name: len(images) for name, images in splits.items()}
        {'training': 1297, 'validation': 0, 'query': 500}
    """
    training, query = _queries_apart(collection, parameters.query_count, seed)
    class_names = split_class_names(collection.class_names, parameters, seed)
    unseen = _unseen_classes(collection.class_names, parameters, seed)
    if "validation" in collection.splits:
        if parameters.training_count is not None or parameters.validation_share > 0 or unseen:
            raise InputError(
                "the source has its own validation split: remove training_count, validation_share and unseen_classes."
            )
        validation = collection.splits["validation"]
    elif parameters.training_count is not None:
        if parameters.training_count > len(training):
            raise InputError(
                f"training_count asks for {parameters.training_count} images, but there are {len(training)}: lower it."
            )
        training, validation = training.first(parameters.training_count), training.after(parameters.training_count)
    elif unseen:
        require_single_labels(training.labels, "unseen_classes")
        numbers = np.array([class_names.index(name) for name in collection.class_names], dtype=np.int64)
        training, query = (replace(images, labels=numbers[images.labels]) for images in (training, query))
        seen = len(class_names) - len(unseen)
        training, validation = _separate(training, np.flatnonzero(training.labels >= seen))
        query = query.take(np.flatnonzero(query.labels >= seen))
        class_names = class_names[:seen]
    else:
        drawn = stratified_draw(
            training.labels, round(parameters.validation_share * len(training)), derive_seed(seed, "validation")
        )
        training, validation = _separate(training, drawn)
    splits = {"training": training, "validation": validation, "query": query}
    check_distinct_ids(splits)
    if training.labels.ndim == 1 or not training.labels.any():
        check_no_empty_class("training", training.labels, class_names)
    elif (rare := np.flatnonzero(class_sizes(training.labels, len(class_names)) == 0)).size:
        # Images of a rare label have others to be trained and found by.
        name = class_names[rare[0]]
        logger.warning("no training image has the label %s (%d such labels): nothing finds it", name, rare.size)
    if not len(query):
        raise InputError("the split 'query' has no image: add images, so that there is something to measure.")
    return splits


def split_class_names(class_names: Sequence[str], parameters: SplitParameters, seed: int) -> list[str]:
    """Order the classes as the labels of the splits do: those to train on first, then the unseen ones.

    Args:
        class_names: names of the classes of the collection.
        parameters: numbers of the draw, see `SplitParameters`.
        seed: the one that the collection is split with.

    Raises:
        InputError: if an unseen class is not there, or fewer than two are left to train on or to search.

    Example:
        >>> split_class_names(["a", "b", "c", "d"], SplitParameters(unseen_classes=("a", "c")), seed=0)
        ['b', 'd', 'a', 'c']
    """
    unseen = _unseen_classes(class_names, parameters, seed)
    return [name for name in class_names if name not in unseen] + unseen


def stratified_draw(labels: NDArray[Any], count: int, seed: int) -> NDArray[np.int64]:
    """Draw `count` rows without replacement, every class in proportion to its size (to within one image).

    Where rows have several labels they are drawn at random, as the published splits of such data were.

    Args:
        labels: class of each row, shape (n,); or multi-hot labels, uint8 of shape (n, classes).
        count: 0..n; shares of a class are rounded by largest remainder, so that they add up to it.
        seed: number that decides the draw.

    Returns:
        The rows drawn, ascending, shape (count,).

    Example:
        >>> labels = np.array([0, 0, 0, 0, 1, 1])
        >>> labels[stratified_draw(labels, count=3, seed=0)]
        array([0, 0, 1])
    """
    if count == 0:
        return np.empty(0, dtype=np.int64)
    generator = np.random.default_rng(seed)
    if labels.ndim == 2:
        return np.sort(generator.choice(len(labels), count, replace=False)).astype(np.int64)
    sizes = np.bincount(labels)
    quotas = sizes * count // len(labels)
    remainders = sizes * count % len(labels)
    quotas[np.argsort(-remainders, kind="stable")[: count - quotas.sum()]] += 1
    drawn = [
        generator.choice(np.flatnonzero(labels == label), quota, replace=False)
        for label, quota in enumerate(quotas)
        if quota
    ]
    return np.sort(np.concatenate(drawn)).astype(np.int64)


def _unseen_classes(class_names: Sequence[str], parameters: SplitParameters, seed: int) -> list[str]:
    """Name the classes to keep away from training, in the order of the collection."""
    asked = parameters.unseen_classes
    if not asked:
        return []
    unknown = [] if isinstance(asked, int) else [name for name in asked if name not in class_names]
    if unknown:
        raise InputError(f"unseen_classes names {unknown[0]!r}: the classes are {', '.join(class_names)}.")
    count = asked if isinstance(asked, int) else len(set(asked))
    if count < 2 or len(class_names) - count < 2:
        raise InputError(
            f"unseen_classes takes {count} of {len(class_names)} classes: take 2 at least and leave 2 to train on."
        )
    if isinstance(asked, int):
        generator = np.random.default_rng(derive_seed(seed, "unseen classes"))
        asked = tuple(class_names[row] for row in generator.choice(len(class_names), count, replace=False))
    return [name for name in class_names if name in asked]


def _queries_apart(collection: ImageCollection, query_count: int | None, seed: int) -> tuple[ImageSet, ImageSet]:
    """Return the images to train and validate from, and the queries."""
    if "all" not in collection.splits:
        if query_count is not None:
            raise InputError("the source has queries of its own, so none can be drawn: set query_count to null.")
        return collection.splits["training"], collection.splits["query"]
    images = collection.splits["all"]
    if query_count is None:
        raise InputError("the source has no queries of its own: set query_count, the number of queries to draw.")
    if query_count >= len(images):
        raise InputError(f"query_count asks for {query_count} of {len(images)} images, so none could train: lower it.")
    return _separate(images, stratified_draw(images.labels, query_count, derive_seed(seed, "query")))


def _separate(images: ImageSet, drawn: NDArray[np.int64]) -> tuple[ImageSet, ImageSet]:
    """Return the images that were not drawn, and those that were."""
    if not drawn.size:
        return images, images.first(0)
    return images.take(np.setdiff1d(np.arange(len(images)), drawn, assume_unique=True)), images.take(drawn)
