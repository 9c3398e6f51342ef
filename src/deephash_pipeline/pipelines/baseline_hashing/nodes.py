"""The classifier as a hash function; the other hash functions on z are fitted by `pipelines.shared.fitting`."""

from collections.abc import Mapping

from torch import Tensor

from deephash_pipeline.hashing.base import Encoder
from deephash_pipeline.hashing.one_of_c import OneOfC


def make_classifier_baseline(softmax_weights: Mapping[str, Tensor]) -> Encoder:
    """Turn the classifier itself into a hash function: bit c of an image says whether it is classified as c."""
    weight, bias = softmax_weights["weight"].numpy(), softmax_weights["bias"].numpy()
    return OneOfC.from_arrays(len(bias), {"weights": weight.T, "bias": bias})
