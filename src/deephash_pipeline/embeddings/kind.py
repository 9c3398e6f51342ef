"""Whether queries are of the kind of an index's vectors, as texts that search images are not."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.embeddings.kernels import count_outside
from deephash_pipeline.hamming.index import HammingIndex

MOST_OF_A_MEAN = 4096
"""Vectors whose mean, and directions from it, tell what is of their kind."""
HALF, COSINE_MARGIN = 0.5, 0.5
LEAST_VECTORS = 100
"""With fewer vectors their range is not known."""
UNLIKE = 1024
"""Candidates for each answer to queries of another kind, of which codes tell less."""
OTHER_KIND = (
    "the queries are of another kind than its vectors, with which recall was measured: more candidates are compared; "
    "build with --queries FILE of such ones to know their recall"
)


class Kind:
    """The mean of some vectors of length 1, and the range of their cosines with it.

    Args:
        vectors: float32 (n, width).

    Example:
        >>> kind = Kind(np.array([[1.0, 0.0], [0.8, 0.6]], dtype=np.float32))
        >>> kind.is_another(np.array([[0.6, 0.8], [-1.0, 0.0], [0.0, 1.0]], dtype=np.float32))
        True
    """

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.mean = vectors.mean(axis=0)
        cosines = vectors @ self.mean
        margin = COSINE_MARGIN * float(cosines.std())
        self.least, self.most = float(cosines.min()) - margin, float(cosines.max()) + margin

    @classmethod
    def of(cls, index: HammingIndex) -> Self | None:
        """The kind of the vectors that an index keeps; None of few, or where none are kept."""
        if len(index) < LEAST_VECTORS or not index.features:
            return None
        return cls(index.features_of(index.sample(MOST_OF_A_MEAN, seed=0)))

    def is_another(self, queries: NDArray[np.float32]) -> bool:
        """Whether most queries of length 1, float32 (n, width), point elsewhere than all vectors."""
        return count_outside(queries, self.mean, self.least, self.most) > HALF * len(queries)
