"""FSDH: supervised discrete hashing from labels to codes, all steps in closed form."""

import numpy as np

from deephash_pipeline.hashing.anchors import (
    DiscreteHashFunction,
    KernelRegression,
    Weight,
    random_signs,
    signs_of_projections,
)
from deephash_pipeline.hashing.rows import Floats

TRIES = 100
"""Random starts, of which the first that gives each class a code of its own is taken, or else the one with most."""


class FSDH(DiscreteHashFunction):
    """Fast supervised discrete hashing (Gui, Liu, Sun, Tao & Tan, PAMI 2018).

    SDH the other way round: labels Y (n, C) are regressed onto codes B in {-1, 1}^(n x K), so that with centred
    Gaussian kernels phi (n, m) to some anchors ::

        ||B - Y W||^2 + lambda ||W||^2 + nu ||B - phi P||^2

    has a closed form in each of its variables: W = (Y'Y + lambda I)^-1 Y'B, P = (phi'phi)^-1 phi'B and
    B = sgn(Y W + nu phi P). With a small nu a class has the code that most of its rows have at the start. The bits of
    an image are sgn(phi P).

    The start is random: where two classes would share a code it is drawn again, as they could never be distinguished.

    Args:
        code_length: number of bits per code, 1 to 4,096.
        anchors: number of training rows that the kernel compares with; all rows if there are fewer.
        rounds: number of times that W, B and P are solved for.
        regression_decay: lambda, the weight of ||W||^2.
        fit_weight: nu, the weight of ||B - phi P||^2.
        random_state: seed of the anchors and of the codes it starts from.

    Example:
        >>> import numpy as np
        >>> labels = np.arange(60) % 3
        >>> z = np.random.default_rng(0).normal(size=(60, 3)) + 6 * np.eye(3)[labels]
        >>> codes = FSDH(code_length=8, anchors=20).fit(z, labels).transform(z)
        >>> len(np.unique(codes[labels == 0], axis=0)) < 5
        True
    """

    display_name = "FSDH"
    reference = "Gui, Liu, Sun, Tao & Tan, Fast supervised discrete hashing, PAMI 2018, arXiv:1904.03556"
    several_labels = True
    regression_decay: Weight = 1.0
    fit_weight: Weight = 1e-5

    def _learn_codes(self, classes: Floats, regression: KernelRegression, generator: np.random.Generator) -> Floats:
        codes = self._start(classes, generator)
        for _ in range(self.rounds):
            of_classes = classes @ self._regress(classes, codes)
            codes = signs_of_projections(of_classes + self.fit_weight * regression.fitted(codes))
        return codes

    def _regress(self, classes: Floats, codes: Floats) -> Floats:
        """W = (Y'Y + lambda I)^-1 Y'B, shape (C, K)."""
        gram = classes.T @ classes + self.regression_decay * np.eye(classes.shape[1])
        return np.asarray(np.linalg.lstsq(gram, classes.T @ codes, rcond=None)[0], np.float64)

    def _start(self, classes: Floats, generator: np.random.Generator) -> Floats:
        best, most = None, 0
        for _ in range(TRIES):
            codes = random_signs((len(classes), self.code_length), generator)
            distinct = len(np.unique(signs_of_projections(self._regress(classes, codes)), axis=0))
            if distinct > most:
                best, most = codes, distinct
            if distinct == classes.shape[1]:
                break
        assert best is not None
        return best
