"""By what the features in an index tell most about the likeness of two pictures."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import ByCosine, HammingIndex
from deephash_pipeline.hamming.coded import CodedItems
from deephash_pipeline.hashers import BaseHasher, OnnxHasher
from deephash_pipeline.hashers.base import EncodedPixels
from deephash_pipeline.hashers.files import ENCODER
from deephash_pipeline.photographs.stored import is_shipped

OfFeatures: TypeAlias = Callable[[NDArray[np.float32]], NDArray[Any]]

FEATURES_OF_A_CENTRE = 4096
"""Items whose features tell where the middle of all is."""
LEARNS_FROM_NEIGHBOURS = "srh"
"""Method of an index's own hash function, see `deephash_pipeline.photographs.fitted`: it is linear."""
ABOVE_ALL = 64.0
"""With its square, one bit of 4,096 weighs as much as all of the outputs can."""


def best_order(hasher: BaseHasher, index: HammingIndex) -> OfFeatures:
    """What pictures are compared by: a function of features (n, width), whose cosines are the order.

    A hash function that has learned which pictures belong together, from labels or from their neighbours, has more to
    say than the features: its real-valued outputs, and their signs. Outputs of kernels and trees are no distances from
    hyperplanes, and decide between equal codes alone. For other hash functions it is the features, from their middle
    in the index: the part that all pictures share tells nothing.

    Args:
        hasher: hasher of the index, one that gives features.
        index: index that keeps features; it has an item.
    """
    if is_shipped(hasher):
        return _from_their_middle(index)
    if isinstance(hasher, OnnxHasher) and hasher.description.method == LEARNS_FROM_NEIGHBOURS:
        return _linear_outputs(hasher)
    # A service of codes alone has none of the packages of hash functions.
    from deephash_pipeline.hashing import HashFunction, LinearEncoder  # noqa: PLC0415
    from deephash_pipeline.hashing.srh import SRH  # noqa: PLC0415

    encoder = _encoder_of(hasher)
    knows_features_alone = isinstance(encoder, HashFunction) and not (encoder.supervised or isinstance(encoder, SRH))
    if knows_features_alone:
        return _from_their_middle(index)
    weight = 1.0 if isinstance(encoder, LinearEncoder) else ABOVE_ALL
    return lambda features: with_signs(encoder.outputs(features), weight)


def _from_their_middle(index: HammingIndex) -> OfFeatures:
    centre = index.mean_features(FEATURES_OF_A_CENTRE)
    return lambda features: features - centre


def _encoder_of(hasher: BaseHasher) -> Any:
    if not isinstance(hasher, OnnxHasher):
        return hasher.encoder  # type: ignore[attr-defined]
    from deephash_pipeline.hashing import load_encoder  # noqa: PLC0415

    about = hasher.description
    return load_encoder(about.encoder, about.code_length, _arrays(hasher))


def _arrays(hasher: OnnxHasher) -> dict[str, NDArray[Any]]:
    """The arrays of a model's hash function, which lie in the file that it was made from, and take no PyTorch."""
    from safetensors import safe_open  # noqa: PLC0415

    assert hasher.file is not None
    with safe_open(hasher.file, framework="np") as file:
        names = [name for name in file.keys() if name.startswith(ENCODER)]  # noqa: SIM118 (not a dictionary)
        return {name.removeprefix(ENCODER): file.get_tensor(name) for name in names}


def _linear_outputs(hasher: OnnxHasher) -> OfFeatures:
    """The outputs of hyperplanes and their signs, without scikit-learn, which takes a second to load."""
    arrays = _arrays(hasher)
    projection, threshold = (arrays[name].astype(np.float64) for name in ("projection", "threshold"))
    return lambda features: with_signs(features.astype(np.float64) @ projection - threshold, 1.0)


def may_order(images: CodedItems) -> bool:
    """Tell whether answers on pictures can be brought into order: features are kept, and packages that it takes there.

    Args:
        images: index of pictures.
    """
    index, hasher = images.index, getattr(images, "hasher", None)
    gives = not isinstance(hasher, OnnxHasher) or find_spec("sklearn") is not None
    return hasher is not None and isinstance(index, HammingIndex) and bool(index.features) and gives


def in_best_order(hasher: BaseHasher, index: HammingIndex, queries: EncodedPixels) -> ByCosine | None:
    """The re-ranking of queries by their features; None where there is no query or no item.

    Raises:
        InputError: queries have no features.
    """
    features = queries.features
    if features is None and len(queries.codes):
        raise InputError("this ONNX model gives no features: make it again by export-onnx, or leave rescore out")
    if features is None or not len(index):
        return None
    function = best_order(hasher, index)
    return ByCosine(function(features), function)


def with_signs(outputs: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """Outputs (n, K) of length 1 and their signs, of length `weight`, (n, 2 K).

    Example:
        >>> with_signs(np.array([[3.0, -4.0]]), 1.0).round(2)
        array([[ 0.6 , -0.8 ,  0.71, -0.71]])
    """
    lengths = np.linalg.norm(outputs, axis=1, keepdims=True)
    signs = np.where(outputs >= 0, weight, -weight) / np.sqrt(outputs.shape[1])
    return np.hstack([outputs / np.where(lengths > 0, lengths, 1), signs])
