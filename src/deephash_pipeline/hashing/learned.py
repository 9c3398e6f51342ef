"""The paper's hash layer, as an encoder that stands without the network."""

from deephash_pipeline.hashing.linear import LinearEncoder


class LearnedHashLayer(LinearEncoder):
    """Eqn. (2) of the paper, h_k = sign(w_k . z), with the w_k that a network's hash layer has learned.

    Made by `from_arrays` from `projection` (D, K), whose column k is w_k, and `threshold` (K,). The paper's layer has
    no bias: its threshold is zero. What a layer subtracts from w_k . z, or a negative bias, is the threshold; positive
    scales move no sign and drop out. There is no `fit`: these weights come from back-propagation.

    Example:
        >>> layer = LearnedHashLayer.from_arrays(2, {"projection": [[1, -1], [2, 1]], "threshold": [0, 0]})
        >>> layer.transform([[1.0, 0.0], [0.0, -1.0]]).tolist()
        [[True, False], [False, False]]
    """
