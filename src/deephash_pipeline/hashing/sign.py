"""Signs of the features themselves, the recipe of most vector databases."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.encoder import doubles, learned
from deephash_pipeline.hashing.hash_function import HashFunction
from deephash_pipeline.hashing.rows import Ints


class Sign(HashFunction):
    """Bit k of a row is 1 if and only if feature k is above 0.

    Nothing is learned, and no feature is mixed with another: a code of D bits needs features that are about balanced
    around 0. A shorter code has the first features alone, which suits embeddings that were trained to be cut short.

    Args:
        code_length: number of bits per code, 1 to D.
        random_state: ignored; nothing is drawn.

    Attributes:
        threshold_: float64, shape (D,), from which on a feature's bit is 1.

    Example:
        >>> Sign(code_length=2).fit([[1.0, 0.0, 2.0], [-1.0, 3.0, 0.0]]).transform([[0.5, 0.0, 9.0]]).tolist()
        [[True, False]]
    """

    display_name = "Signs of features"
    reference = (
        "Agrawal, Girshick & Malik, Analyzing the performance of multilayer neural networks for object "
        "recognition, ECCV 2014, arXiv:1407.1610"
    )
    threshold_: NDArray[np.float64] = learned("features")

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        # The smallest number: after a ReLU a feature is often 0, which says no more than a negative one.
        return {"threshold": np.full(z.shape[1], np.finfo(np.float64).tiny)}

    def _set_arrays(self, arrays: Mapping[str, Any]) -> None:
        super()._set_arrays(arrays)
        if self.code_length > self.n_features_in_:
            raise InputError(
                f"code_length is {self.code_length}, but X has {self.n_features_in_} features, and each bit takes one: "
                "shorten the code, or use rotation"
            )

    def _outputs(self, z: Any, xp: Any = np) -> Any:
        (threshold,) = doubles(xp, self.threshold_)
        return (z - threshold)[:, : self._n_features_out]
