r"""What every way to compute the exponentiated loss shares: its parameters, pair weights and how sums become a loss.

The paper's loss is the exponentiated code product and its bilinear smooth approximation (section 2.1, Eqns 3-12). For
codes b = sign(u) of length K the loss of a pair is exp(-Y_ij b_i o b_j) (Eqn 6). Leaving bit k out splits it into

    exp(-Y (b_i o b_j - b_i(k) b_j(k) / K))  *  (c + c' b_i(k) b_j(k))        c = cosh(Y/K), c' = -sinh(Y/K)

(Eqns 4 and 7). The first factor, the frozen partial code product, re-weights the pair; in the second the product of
signs becomes 2 sigma(u_ik u_jk) - 1 (Eqn 8). The mean over k is the surrogate (Eqns 9 and 10).

Let P = b_i o b_j, E = exp(-Y P), C = cosh(1/K), S = sinh(1/K), and w the weight of a pair. As Y and the bit product are
+-1, weight, first factor and the sign of c' together are the pair factor

    F = w E (Y C + S b_i(k) b_j(k))

which takes two values per pair, whatever K. With x = beta u_ik u_jk the loss and its gradient are the sums

    sum over i, j of w E C (C + S Y P)  -  S/K sum over i, j, k of F (2 sigma(x) - 1)
    dL/du_ik = -4 beta S/K sum over j of F sigma(x) (1 - sigma(x)) u_jk

in which every pair stands twice, as (i, j) and (j, i).
"""

import math
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor


class ExponentiatedLossParameters(BaseModel):
    """The defaults are the paper's loss to the letter; each field is a named departure from it.

    Attributes:
        name: of the loss.
        loss_scale: ``paper`` keeps c and c'; ``unit`` drops the constant c and multiplies the rest by K / sinh(1/K), so
            that the gradient for one bit does not shrink with 1/K^2. The path of gradient descent is the same at a
            step size that many times smaller: it is one of the "scaling factors" which the paper discards.
        temperature: beta in sigma(beta u_i u_j).
        balance_pairs: give similar and dissimilar pairs half of the weight each, whatever their numbers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["exponentiated"] = "exponentiated"
    loss_scale: Literal["paper", "unit"] = "paper"
    temperature: float = Field(default=1.0, gt=0)
    balance_pairs: bool = False


class LossAndGradient(NamedTuple):
    """What one pass over the pairs of a batch gives.

    Attributes:
        value: of the surrogate (Eqn 10), scalar of u's type.
        gradient: of the value with respect to u, the partial code product being a constant; shape and type of u.
        true_loss: Eqn (6) on the signs, mean over pairs, scalar of u's type.
    """

    value: Tensor
    gradient: Tensor
    true_loss: Tensor


class PairSums(NamedTuple):
    """Sums over the ordered pairs of a batch; floats, or scalar tensors.

    Attributes:
        exponential: of w E.
        signed_product: of w E Y P.
        surrogate: of F (2 sigma(x) - 1), over all bits too.
    """

    exponential: Any
    signed_product: Any
    surrogate: Any


def surrogate_scale(code_length: int, parameters: ExponentiatedLossParameters) -> float:
    """Factor of the mean over bits of F (2 sigma - 1): -sinh(1/K), or -K in units of the gradient."""
    return -math.sinh(1 / code_length) if parameters.loss_scale == "paper" else -float(code_length)


def gradient_scale(code_length: int, parameters: ExponentiatedLossParameters) -> float:
    """Factor of the sum over j of F sigma (1 - sigma) u_jk: pairs stand twice, and 2 sigma - 1 has twice the slope."""
    return 4 * parameters.temperature * surrogate_scale(code_length, parameters) / code_length


def loss_from_sums(sums: PairSums, code_length: int, parameters: ExponentiatedLossParameters) -> Any:
    """Return the value of the surrogate; with `loss_scale` ``unit`` it has no constant part."""
    value = surrogate_scale(code_length, parameters) / code_length * sums.surrogate
    if parameters.loss_scale == "paper":
        c, s = math.cosh(1 / code_length), math.sinh(1 / code_length)
        value = value + c * (c * sums.exponential + s * sums.signed_product)
    return value
