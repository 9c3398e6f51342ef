r"""Shared by the fast ways to compute the exponentiated loss: departures from the paper, and how sums become a loss.

`reference` writes the loss as the paper does; these are the same equations as sums that are cheap.

Let P = b_i o b_j (Eqn 3), E = exp(-Y P) (Eqn 6), C = cosh(1/K), S = sinh(1/K), and w the weight of a pair. As Y and the
bit product are +-1, c is C, c' is -Y S (Eqn 7), and exp(-Y (P - b_i(k) b_j(k) / K)) is E (C + Y S b_i(k) b_j(k)). So
weight, re-weighting by the partial code product (Eqn 4) and the sign of c' together are the pair factor

    F = w E (Y C + S b_i(k) b_j(k))

which takes two values per pair, whatever K. With x = beta u_ik u_jk the loss (Eqn 10) and its gradient are the sums

    sum over i, j of w E C (C + S Y P)  -  S/K sum over i, j, k of F (2 sigma(x) - 1)
    dL/du_ik = -4 beta S/K sum over j of F sigma(x) (1 - sigma(x)) u_jk

in which every pair stands twice, as (i, j) and (j, i).
"""

import math
from typing import Any, Literal, NamedTuple, TypeAlias

from torch import Tensor

LossScale: TypeAlias = Literal["paper", "unit"]
LOG2_E = 1 / math.log(2)
"""exp(x) is 2 to the power of x LOG2_E, which is what processors compute."""


class Departures(NamedTuple):
    """What is not as in the paper, by the keywords of `ExponentiatedLoss`, which explains them and has the defaults.

    Example:
        >>> Departures(loss_scale="unit", temperature=1.0, balance_pairs=True).loss_scale
        'unit'
    """

    loss_scale: LossScale
    temperature: float
    balance_pairs: bool

    def surrogate_scale(self, code_length: int) -> float:
        """Factor of the mean over bits of F (2 sigma - 1): -sinh(1/K), or -K in units of the gradient.

        Example:
            >>> Departures("unit", 1.0, True).surrogate_scale(48)
            -48.0
        """
        return -math.sinh(1 / code_length) if self.loss_scale == "paper" else -float(code_length)

    def gradient_scale(self, code_length: int) -> float:
        """Factor of the sum over j of F sigma (1 - sigma) u_jk: pairs stand twice, and 2 sigma - 1 has twice the slope.

        Example:
            >>> Departures("unit", 1.0, True).gradient_scale(48)
            -4.0
        """
        return 4 * self.temperature * self.surrogate_scale(code_length) / code_length


class LossAndGradient(NamedTuple):
    """What one pass over the pairs of a batch gives.

    Attributes:
        value: value of the surrogate (Eqn 10), scalar of u's type.
        gradient: gradient of the value with respect to u, the partial code product being a constant; shape and type of
            u.
        true_loss: Eqn (6) on the signs, mean over pairs, scalar of u's type.

    Example:
        >>> import torch
        >>> LossAndGradient(torch.tensor(0.5), torch.zeros(2, 12), torch.tensor(0.25)).gradient.shape
        torch.Size([2, 12])
    """

    value: Tensor
    gradient: Tensor
    true_loss: Tensor


class PairSums(NamedTuple):
    """Sums over the ordered pairs of a batch; floats, or scalar tensors.

    Attributes:
        exponential: sum of w E.
        signed_product: sum of w E Y P.
        surrogate: sum of F (2 sigma(x) - 1), over all bits too.
    """

    exponential: Any
    signed_product: Any
    surrogate: Any

    def loss(self, code_length: int, departures: Departures) -> Any:
        """Return the value of the surrogate; with `loss_scale` ``unit`` it has no constant part.

        Example:
            >>> sums = PairSums(exponential=1.0, signed_product=0.5, surrogate=0.25)
            >>> sums.loss(48, Departures("unit", 1.0, True))
            -0.25
        """
        value = departures.surrogate_scale(code_length) / code_length * self.surrogate
        if departures.loss_scale == "paper":
            c, s = math.cosh(1 / code_length), math.sinh(1 / code_length)
            value = value + c * (c * self.exponential + s * self.signed_product)
        return value
