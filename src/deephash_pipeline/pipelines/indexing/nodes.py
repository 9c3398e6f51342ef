"""The database of a run under the codes of a cell."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.deephash.training_set import LabelledImages, TrainingSet
from deephash_pipeline.hashing import Encoder
from deephash_pipeline.photographs import EncodedDatabase
from deephash_pipeline.pipelines.shared.hashers import assembled
from deephash_pipeline.retrieval import CodeSets
from deephash_pipeline.retrieval.labels import label_names


class IndexedImages(NamedTuple):
    """The images that are indexed, with their ids."""

    ids: Sequence[str]
    training_set: TrainingSet


def join_codes(
    hasher: ImageHasher, codes: CodeSets, ids: Sequence[str], images: LabelledImages, class_names: Sequence[str]
) -> EncodedDatabase:
    """Join the images of the database with their codes and the hasher that made them."""
    return EncodedDatabase(hasher, ids, codes.database, images.images, label_names(images.labels, class_names))


def assemble_and_join_codes(
    encoder: Encoder, trunk_weights: dict[str, Tensor], codes: CodeSets, database: IndexedImages, run: Run
) -> EncodedDatabase:
    """Put the hasher together from trunk and encoder first."""
    ids, training_set = database
    hasher = assembled(encoder, trunk_weights, training_set, run)
    return join_codes(hasher, codes, ids, training_set, training_set.class_names)
