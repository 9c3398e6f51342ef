"""SDH: codes from which a linear classifier reads the class, learned bit by bit as discrete variables."""

import numpy as np

from deephash_pipeline.hashing.anchors import (
    DiscreteHashFunction,
    KernelRegression,
    Weight,
    random_signs,
    signs_of_projections,
)
from deephash_pipeline.hashing.rows import Floats

MOST_PASSES = 10
"""Passes over the bits of a round, which end earlier where one changes nothing; the authors' number."""


class SDH(DiscreteHashFunction):
    """Supervised discrete hashing (Shen, Shen, Liu & Shen, CVPR 2015); not the SDH of Liong et al., `LiongSDH`.

    With one-hot labels Y (n, C) and centred Gaussian kernels phi (n, m) to some anchors, codes B in {-1, 1}^(n x K), a
    classifier W and a projection P minimise ::

        ||Y - B W||^2 + lambda ||W||^2 + nu ||B - phi P||^2

    in turn: W = (B'B + lambda I)^-1 B'Y and P = (phi'phi)^-1 phi'B in closed form, and B bit by bit, as for one bit b
    with all others fixed the best is b = sgn(q - B_ W_ w), w being its row of W, B_ and W_ all others, and q its column
    of Q = Y W' + nu phi P. The bits of an image are sgn(phi P).

    Args:
        code_length: number of bits per code, 1 to 4,096.
        anchors: number of training rows that the kernel compares with; all rows if there are fewer.
        rounds: number of times that W, B and P are solved for.
        classifier_decay: lambda, the weight of ||W||^2.
        fit_weight: nu, the weight of ||B - phi P||^2.
        random_state: seed of the anchors and of the codes it starts from.

    Example:
        >>> import numpy as np
        >>> labels = np.arange(60) % 3
        >>> z = np.random.default_rng(0).normal(size=(60, 3)) + 6 * np.eye(3)[labels]
        >>> codes = SDH(code_length=8, anchors=20).fit(z, labels).transform(z)
        >>> len(np.unique(codes[labels == 0], axis=0)) < 5
        True
    """

    display_name = "SDH"
    reference = "Shen, Shen, Liu & Shen, Supervised discrete hashing, CVPR 2015, arXiv:1503.01557"
    several_labels = True
    classifier_decay: Weight = 1.0
    fit_weight: Weight = 1e-5

    def _learn_codes(self, classes: Floats, regression: KernelRegression, generator: np.random.Generator) -> Floats:
        codes = random_signs((len(classes), self.code_length), generator)
        for _ in range(self.rounds):
            gram = codes.T @ codes + self.classifier_decay * np.eye(self.code_length)
            classifier = np.asarray(np.linalg.lstsq(gram, codes.T @ classes, rcond=None)[0], np.float64)
            target = classes @ classifier.T + self.fit_weight * regression.fitted(codes)
            codes = solve_bits(codes, target, classifier)
        return codes


def solve_bits(codes: Floats, target: Floats, classifier: Floats) -> Floats:
    """The B that minimises ||Y - B W||^2 + nu ||B - phi P||^2 in each bit, by discrete cyclic coordinate descent.

    Args:
        codes: codes to start from, 1 and -1, shape (n, K).
        target: Q = Y W' + nu phi P, shape (n, K).
        classifier: W, shape (K, C).

    Returns:
        Codes, shape (n, K).

    Example:
        >>> solve_bits(np.ones((2, 1)), np.array([[3.0], [-3.0]]), classifier=np.ones((1, 2)))
        array([[ 1.],
               [-1.]])
    """
    codes, overlap = codes.copy(), classifier @ classifier.T
    for _ in range(MOST_PASSES):
        changed = False
        for bit in range(codes.shape[1]):
            of_others = codes @ overlap[:, bit] - overlap[bit, bit] * codes[:, bit]
            best = signs_of_projections(target[:, bit] - of_others)
            changed |= bool((best != codes[:, bit]).any())
            codes[:, bit] = best
        if not changed:
            break
    return codes
