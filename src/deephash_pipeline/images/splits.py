"""Training, validation and query images of a benchmark; the queries search the training images."""

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from deephash_pipeline.errors import InputError
from deephash_pipeline.images.collection import ImageCollection, ImageSet, check_distinct_ids, check_no_empty_class
from deephash_pipeline.seeds import derive_seed


class SplitParameters(BaseModel):
    """How to split a collection.

    Attributes:
        query_count: number of queries drawn, class by class, where the source has no queries of its own; else None.
        training_count: the first so many training images train and the rest validates (MNIST: 50000).
        validation_share: where `training_count` is None, the share of the training images drawn, class by class, to
            validate with.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    query_count: int | None = Field(default=None, ge=1)
    training_count: int | None = Field(default=None, ge=1)
    validation_share: float = Field(default=0.0, ge=0, lt=1)

    @model_validator(mode="after")
    def _one_way_to_validate(self) -> "SplitParameters":
        if self.training_count is not None and self.validation_share > 0:
            raise ValueError("give training_count or validation_share, not both")
        return self


def split_collection(collection: ImageCollection, parameters: SplitParameters, seed: int) -> dict[str, ImageSet]:
    """Make the three splits of a benchmark; no image is in two of them.

    Args:
        collection: with the split "all", or with "training" and "query" (a "validation" of its own is kept).
        parameters: see `SplitParameters`.
        seed: of the draws; one for the queries and one for the validation images are derived from it.

    Returns:
        "training", "validation" (possibly of no image) and "query".

    Raises:
        InputError: if fewer images are there than asked for, the parameters do not fit the collection, a class is left
            without training images, or an id is in two splits.
    """
    training, query = _queries_apart(collection, parameters.query_count, seed)
    if "validation" in collection.splits:
        if parameters.training_count is not None or parameters.validation_share > 0:
            raise InputError("the source has its own validation split: remove training_count and validation_share.")
        validation = collection.splits["validation"]
    elif parameters.training_count is not None:
        if parameters.training_count > len(training):
            raise InputError(
                f"training_count asks for {parameters.training_count} images, but there are {len(training)}: lower it."
            )
        training, validation = training.first(parameters.training_count), training.after(parameters.training_count)
    else:
        drawn = stratified_draw(
            training.labels, round(parameters.validation_share * len(training)), derive_seed(seed, "validation")
        )
        training, validation = _separate(training, drawn)
    splits = {"training": training, "validation": validation, "query": query}
    check_distinct_ids(splits)
    check_no_empty_class("training", training.labels, collection.class_names)
    if not len(query):
        raise InputError("the split 'query' has no image: add images, so that there is something to measure.")
    return splits


def stratified_draw(labels: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    """Draw `count` rows without replacement, every class in proportion to its size (to within one image).

    Args:
        labels: class of each row, shape (n,).
        count: 0..n; shares of a class are rounded by largest remainder, so that they add up to it.
        seed: of the draw.

    Returns:
        The rows drawn, ascending, shape (count,).
    """
    if count == 0:
        return np.empty(0, dtype=np.int64)
    generator = np.random.default_rng(seed)
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
