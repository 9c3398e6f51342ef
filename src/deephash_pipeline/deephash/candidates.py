"""Codes that a fit may end with: the fine-tuned ones, and those that fine-tuning must not end below."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.experiment import Run
from deephash_pipeline.deephash.hasher import ImageHasher
from deephash_pipeline.deephash.training_set import LabelledImages, TrainingSet
from deephash_pipeline.hashing import ITQ
from deephash_pipeline.hashing.encoder import Encoder
from deephash_pipeline.retrieval import count_distances, mean_average_precision, pack_bits

NAMES = {
    "deephash": "fine-tuning",
    "deephash_pretrained": "its pre-training",
    "itq": "ITQ on the features of pre-training",
}


class Candidate(NamedTuple):
    """A hasher, and its codes of the training images."""

    hasher: ImageHasher
    codes: NDArray[np.uint8]


def held_out_map(
    hasher: ImageHasher,
    queries: LabelledImages,
    codes: NDArray[np.uint8],
    labels: NDArray[np.int64] | NDArray[np.uint8],
) -> float:
    """Measure mAP of held-out images as queries of packed codes (n, bytes) of the training images; NaN without any."""
    if not len(queries.labels):
        return float("nan")
    found = count_distances(hasher.encode(queries.images), queries.labels, codes, labels, hasher.code_length)
    return mean_average_precision(found)


def without_fine_tuning(
    training_set: TrainingSet, z: NDArray[np.float32], trunk_weights: Mapping[str, Tensor], layer: Encoder, run: Run
) -> Iterator[Candidate]:
    """Give the codes of pre-training, and those of ITQ on its features, if there are enough of these for so many bits.

    Args:
        training_set: images that are encoded.
        z: their features after stage 1, float32 (n, z_dimension).
        trunk_weights: state of the trunk after stage 1.
        layer: the hash layer of stage 2, as an encoder.
        run: network, code length and seed.
    """
    trunk = run.experiment.trunk_for(training_set.images.shape[1:])
    trunk.load_state_dict(dict(trunk_weights))
    encoders = {"deephash_pretrained": layer}
    if run.code_length <= min(z.shape[1], len(z) - 1):
        encoders["itq"] = ITQ(run.code_length, random_state=derive_seed(run.experiment.seed, "ITQ")).fit(z)
    for method, encoder in encoders.items():
        cell = Cell(method=method, code_length=run.code_length)
        hasher = ImageHasher.assemble(trunk, encoder, training_set, replace(run, cell=cell))
        yield Candidate(hasher, pack_bits(encoder.transform(z)))
