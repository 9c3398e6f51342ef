"""COSDISH: discrete codes from columns of the similarity matrix, a few of them drawn in each round."""

import numpy as np
from pydantic import PositiveInt

from deephash_pipeline.common.machine_code import compiled
from deephash_pipeline.hashing.anchors import DiscreteHashFunction, KernelRegression, random_signs
from deephash_pipeline.hashing.rows import Floats, Ints


class COSDISH(DiscreteHashFunction):
    """Column sampling based discrete supervised hashing (Kang, Li & Zhou, AAAI 2016), with kernels out of sample.

    Codes B in {-1, 1}^(n x K) are to give B B' = K S, where S is 1 for two rows of one class and -1 otherwise. A round
    draws some rows Omega and looks at their columns of S alone, alternating between two steps: the codes of the rows
    outside, Gamma, are sgn(S_Gamma B_Omega), a row's old bit where that is zero, with negatives scaled so that the
    entries of S_Gamma sum to zero; and the codes of Omega, bit by bit with R what the other bits leave of K S, a local
    minimum of -2 b_Gamma' R_Gamma b - 2 b' R_Omega b over single flips. An image's bits are those of a regression from
    Gaussian kernels to the codes (the authors': a linear one, or boosted trees).

    Args:
        code_length: number of bits per code, 1 to 4,096.
        anchors: number of training rows that the kernel compares with; all rows if there are fewer.
        rounds: number of times that columns are drawn; the authors' number is 10.
        alternations: number of times that a round alternates between the two steps; the authors' number is 3.
        columns_per_bit: rows in Omega over the code length. As many rows as bits, the authors' number, leave short
            codes to chance; four times as many do not.
        random_state: seed of the anchors, the columns and the codes it starts from.

    Example:
        >>> import numpy as np
        >>> labels = np.arange(60) % 3
        >>> z = np.random.default_rng(0).normal(size=(60, 3)) + 6 * np.eye(3)[labels]
        >>> codes = COSDISH(code_length=8, anchors=20).fit(z, labels).transform(z)
        >>> len(np.unique(codes[labels == 0], axis=0)) < 5
        True
    """

    display_name = "COSDISH"
    reference = (
        "Kang, Li & Zhou, Column sampling based discrete supervised hashing, AAAI 2016, "
        "http://cs.nju.edu.cn/lwj/paper/AAAI16_COSDISH.pdf"
    )
    rounds: PositiveInt = 10
    alternations: PositiveInt = 3
    columns_per_bit: PositiveInt = 4

    def _learn_codes(self, classes: Floats, regression: KernelRegression, generator: np.random.Generator) -> Floats:
        codes = random_signs((len(classes), self.code_length), generator)
        columns = min(len(classes), self.columns_per_bit * self.code_length)
        for _ in range(self.rounds):
            drawn = generator.choice(len(classes), columns, replace=False)
            for _ in range(self.alternations):
                codes = solve_rows(codes, classes, drawn)
                codes[drawn] = solve_columns(codes, classes, drawn)
        return codes


def solve_rows(codes: Floats, classes: Floats, drawn: Ints) -> Floats:
    """B_Gamma = sgn(S_Gamma B_Omega) with balanced S, the old bits where that is zero.

    S is never made: its row depends on the class alone, so that the sums are taken once for each class.

    Args:
        codes: B, 1 and -1, shape (n, K).
        classes: one-hot labels, shape (n, C).
        drawn: Omega, rows, shape (columns,).

    Returns:
        B with new codes outside Omega, shape (n, K).
    """
    of_drawn, outside = classes[drawn], np.ones(len(codes), dtype=np.bool_)
    outside[drawn] = False
    similar = float((classes[outside] @ of_drawn.sum(axis=0)).sum())
    dissimilar = float(outside.sum()) * len(drawn) - similar
    negative = similar / dissimilar if dissimilar else 1.0
    by_class = of_drawn.T @ codes[drawn]
    pulled = (1 + negative) * by_class - negative * codes[drawn].sum(axis=0)
    solved = np.sign(np.round(classes @ pulled, 9))
    return np.where(outside[:, np.newaxis] & (solved != 0), solved, codes)


def solve_columns(codes: Floats, classes: Floats, drawn: Ints) -> Floats:
    """Codes of Omega, bit by bit, each at a local minimum of -2 b_Gamma' R_Gamma b - 2 b' R_Omega b.

    Args:
        codes: B, 1 and -1, shape (n, K).
        classes: one-hot labels, shape (n, C).
        drawn: Omega, rows, shape (columns,).

    Returns:
        B_Omega, shape (columns, K).
    """
    code_length = codes.shape[1]
    of_drawn, inside = classes[drawn], codes[drawn].copy()
    outside = np.delete(codes, drawn, axis=0)
    # S v is 2 (sums of v by class) - sum of v, for any v over Gamma.
    pulled = code_length * (2 * of_drawn @ (np.delete(classes, drawn, axis=0).T @ outside) - outside.sum(axis=0))
    overlap = outside.T @ outside
    target = code_length * (2 * of_drawn @ of_drawn.T - 1)
    left = target - inside @ inside.T
    for bit in range(code_length):
        left += np.outer(inside[:, bit], inside[:, bit])
        of_others = inside @ overlap[:, bit] - overlap[bit, bit] * inside[:, bit]
        inside[:, bit] = flip_while_better(inside[:, bit], left, pulled[:, bit] - of_others)
        left -= np.outer(inside[:, bit], inside[:, bit])
    return inside


@compiled()
def flip_while_better(bit: Floats, quadratic: Floats, linear: Floats) -> Floats:
    """Flip single entries of b, in turn, as long as b' R b + c' b rises.

    Args:
        bit: b, 1 and -1, shape (n,).
        quadratic: R, symmetric, shape (n, n); its diagonal does not count.
        linear: c, shape (n,).

    Returns:
        b, shape (n,), where no single flip raises the sum.
    """
    bit = bit.copy()
    pulls = linear.copy()
    for row in range(len(bit)):
        for column in range(len(bit)):
            if row != column:
                pulls[row] += 2 * quadratic[row, column] * bit[column]
    flipped = True
    while flipped:
        flipped = False
        for row in range(len(bit)):
            if bit[row] * pulls[row] < 0:
                bit[row] = -bit[row]
                flipped = True
                for column in range(len(bit)):
                    if row != column:
                        pulls[column] += 4 * quadratic[row, column] * bit[row]
    return bit
