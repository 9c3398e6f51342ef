"""The classifier baseline: the code that names the predicted class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.hashing.encoder import Encoder, doubles, learned


class OneOfC(Encoder):
    """One bit per class: 1 for the class that a softmax classifier on `z` finds most likely, 0 for all others.

    Retrieval by these codes returns the items of the predicted class, then all others, so its mAP follows from the
    classifier's confusions on queries and database alone: what a supervised code gains over it is gained by more than
    classification. Made by `from_arrays`; the code length is the number of classes. Of equally likely classes the
    lowest is taken.

    Attributes:
        weights_: float32, shape (D, code_length), the classifier's weights, one column per class.
        bias_: float64, shape (code_length,).

    Example:
        >>> import numpy as np
        >>> classifier = OneOfC.from_arrays(3, {"weights": np.eye(3), "bias": np.zeros(3)})
        >>> classifier.transform([[0.1, 0.7, 0.2]]).tolist()
        [[False, True, False]]
    """

    weights_: NDArray[np.float32] = learned("features", "code_length")
    bias_: NDArray[np.float64] = learned("code_length")

    def _outputs(self, z: Any, xp: Any = np) -> Any:
        weights, bias = doubles(xp, self.weights_, self.bias_)
        predicted = (z @ weights + bias).argmax(1)
        return (predicted[:, None] == xp.arange(self._n_features_out)) * 1.0 - 0.5
