"""The classifier as a hash function; the other hash functions on z are fitted by `pipelines.shared.fitting`."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from torch import Tensor

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.encoder import Encoder
from deephash_pipeline.hashing.one_of_c import OneOfC
from deephash_pipeline.images.sources.collection import require_single_labels
from deephash_pipeline.pipelines.shared.fitting import encode_z
from deephash_pipeline.pipelines.shared.searching import Sets
from deephash_pipeline.retrieval import CodeSets


def hash_by_classifier(
    softmax_weights: Mapping[str, Tensor], training_labels: NDArray[Any], z: Sets
) -> tuple[Encoder, CodeSets]:
    """Hash the three sets by the classifier, see `make_classifier_baseline`."""
    encoder = make_classifier_baseline(softmax_weights, training_labels)
    return encoder, encode_z(encoder, z)


def make_classifier_baseline(softmax_weights: Mapping[str, Tensor], training_labels: NDArray[Any]) -> Encoder:
    """Turn the classifier itself into a hash function: bit c of an image says whether it is classified as c.

    Raises:
        InputError: images have several labels, of which one bit says too little.
    """
    require_single_labels(training_labels, "the 1-of-C code of the classifier")
    if not softmax_weights:
        raise InputError(
            "the 1-of-C code is that of a classifier, and on a `frozen` trunk there is none: leave out one_of_c, "
            "or set experiment.trunk.frozen to false"
        )
    weight, bias = softmax_weights["weight"].numpy(), softmax_weights["bias"].numpy()
    return OneOfC.from_arrays(len(bias), {"weights": weight.T, "bias": bias})
