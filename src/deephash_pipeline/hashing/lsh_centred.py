"""LSH through the mean of the training set."""

from dataclasses import field

from deephash_pipeline.hashing.lsh import LSH


class CentredLSH(LSH):
    """LSH whose hyperplanes pass through the training set's mean, as in HABIR and most toolboxes.

    Features after a ReLU lie in one orthant, at small angles to each other; seen from their mean they spread, and bits
    are balanced. That is no part of Charikar's definition, nor of `LSH`, which is uncentred.

    Args:
        code_length: number of bits per code, 1 to 4,096.
        random_state: seed of the hyperplanes.

    Example:
        >>> CentredLSH(code_length=4).fit([[0.0, 1.0], [1.0, 0.0]]).transform([[2.0, 1.0], [-2.0, -1.0]]).astype(int)
        array([[1, 1, 0, 1],
               [0, 0, 1, 0]])
    """

    display_name = "LSH (centred)"
    centre: bool = field(init=False, default=True)
