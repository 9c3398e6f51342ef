r"""The exponentiated loss as the paper writes it, Eqns (2) to (11) in their order: to be read beside it.

Section "Exponentiated Code Product Optimization" of Mu and Liu, "Deep Hashing: A Joint Approach for Image Signature
Learning", AAAI 2017. Letters are the paper's, and arrays hold all pairs and bits at once:

    i, j    samples of a batch                      z   (batch, dimension), the layer below the hash layer
    k       bits, of which there are K              w   (dimension, K), its columns are the w_k
    Y       (batch, batch), Eqn (1)                 u   (batch, K), u_ik = w_k' z_i
    b       (batch, K), of -1 and 1                 what depends on i, j and k is (batch, batch, K)

Nothing here saves time or memory: the ways that training takes (`cpu`, `cuda`, `tiles`) are tested against it. Y is
`supervision_matrix`, which is 0 for a sample with itself. Where the paper sums over pairs, weights that add up to 1
(`pair_weights`) make it a mean.
"""

import torch
from torch import Tensor

from deephash_pipeline.losses.exponentiated.formula import Departures, LossAndGradient, LossScale
from deephash_pipeline.losses.pairs import supervision_matrix


def hash_codes(u: Tensor) -> Tensor:
    """Eqn (2): b_i(k) = h_k(x_i) = sign(w_k' z_i); a zero counts as 1.

    Example:
        >>> hash_codes(torch.tensor([[0.3, 0.0, -2.0]]))
        tensor([[ 1.,  1., -1.]])
    """
    return torch.where(u >= 0, 1.0, -1.0).to(u.dtype)


def bit_products(b: Tensor) -> Tensor:
    """b_i(k) b_j(k).

    Example:
        >>> b = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
        >>> bit_products(b)[0, 1]
        tensor([ 1., -1.])
    """
    return b[:, None, :] * b[None, :, :]


def code_product(b: Tensor) -> Tensor:
    """Eqn (3): b_i o b_j = 1/K sum over k of b_i(k) b_j(k), in [-1, 1], shape (batch, batch).

    Example:
        >>> b = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
        >>> code_product(b)
        tensor([[1., 0.],
                [0., 1.]])
    """
    return bit_products(b).mean(dim=-1)


def partial_code_product(b: Tensor) -> Tensor:
    r"""Eqn (4): b_i(\k) o b_j(\k) = b_i o b_j - 1/K b_i(k) b_j(k), the code product with bit k absent.

    Example:
        >>> b = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
        >>> code_product(b)[0, 1], partial_code_product(b)[0, 1]
        (tensor(0.), tensor([-0.5000,  0.5000]))
    """
    code_length = b.shape[1]
    return code_product(b)[:, :, None] - bit_products(b) / code_length


def objective(atomic_losses: Tensor, weights: Tensor) -> Tensor:
    """Eqn (5): Q = sum over i, j of l(x_i, x_j), here with the weights of pairs.

    Example:
        >>> weights = pair_weights(supervision_matrix(torch.tensor([0, 1])), False)
        >>> objective(torch.tensor([[0.0, 4.0], [2.0, 0.0]]), weights)
        tensor(3.)
    """
    return (weights * atomic_losses).sum()


def atomic_loss(b: Tensor, y: Tensor) -> Tensor:
    """Eqn (6): l(x_i, x_j) = exp(-Y_ij b_i o b_j).

    Example:
        >>> b = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
        >>> atomic_loss(b, torch.tensor([[0.0, -1.0], [-1.0, 0.0]]))
        tensor([[1., 1.],
                [1., 1.]])
    """
    return torch.exp(-y * code_product(b))


def reweighting(b: Tensor, y: Tensor) -> Tensor:
    r"""First of the two factors of l after Eqn (6): exp(-Y_ij b_i(\k) o b_j(\k)), in which bit k has no part.

    Example:
        >>> b = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
        >>> reweighting(b, torch.tensor([[0.0, 1.0], [1.0, 0.0]]))[0, 1]
        tensor([1.6487, 0.6065])
    """
    return torch.exp(-y[:, :, None] * partial_code_product(b))


def constants(y: Tensor, code_length: int, loss_scale: LossScale = "paper") -> tuple[Tensor, Tensor]:
    """Eqn (7): c and c' of exp(-1/K Y_ij b_i(k) b_j(k)) = c_ij + c'_ij b_i(k) b_j(k), true as the product is -1 or 1.

    Args:
        y: Y of Eqn (1).
        code_length: K.
        loss_scale: ``unit`` departs from the paper: it drops c, and divides c' by sinh(1/K) / K.

    Returns:
        Two tensors of y's shape.

    Example:
        >>> c, c_prime = constants(torch.tensor([1.0, -1.0]), code_length=12)
        >>> torch.allclose(torch.exp(torch.tensor(-1 / 12)), c[0] + c_prime[0])
        True
    """
    decay, growth = torch.exp(-y / code_length), torch.exp(y / code_length)
    c, c_prime = (decay + growth) / 2, (decay - growth) / 2
    if loss_scale == "unit":
        return torch.zeros_like(c), -y * code_length
    return c, c_prime


def sigma_of_products(u: Tensor, temperature: float = 1.0) -> Tensor:
    """Return sigma(w_k' z_i z_j' w_k), sigma(x) = 1 / (1 + exp(-x)); the paper has a temperature of 1.

    Example:
        >>> sigma_of_products(torch.tensor([[0.0], [2.0]]))[0, 1]
        tensor([0.5000])
    """
    return torch.sigmoid(temperature * u[:, None, :] * u[None, :, :])


def relaxed_bit_products(u: Tensor, temperature: float = 1.0) -> Tensor:
    """Eqn (8): b_i(k) b_j(k) = sign(w_k' z_i z_j' w_k) is about 2 sigma(w_k' z_i z_j' w_k) - 1.

    Example:
        >>> relaxed_bit_products(torch.tensor([[3.0], [-3.0]]))[0, 1]
        tensor([-0.9998])
    """
    return 2 * sigma_of_products(u, temperature) - 1


def approximate_atomic_loss(u: Tensor, y: Tensor, loss_scale: LossScale = "paper", temperature: float = 1.0) -> Tensor:
    r"""Eqn (9): l^(k)(x_i, x_j) = exp(-Y_ij b_i(\k) o b_j(\k)) (c_ij + c'_ij (2 sigma(w_k' z_i z_j' w_k) - 1)).

    The partial code product is frozen: no gradient passes through b.

    Example:
        >>> u, y = torch.tensor([[1.0, -1.0], [1.0, 1.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> approximate_atomic_loss(u, y).shape
        torch.Size([2, 2, 2])
    """
    b = hash_codes(u.detach())
    c, c_prime = constants(y, u.shape[1], loss_scale)
    return reweighting(b, y) * (c[:, :, None] + c_prime[:, :, None] * relaxed_bit_products(u, temperature))


def mean_over_bits(approximate_atomic_losses: Tensor) -> Tensor:
    """Eqn (10): l(x_i, x_j) is about 1/K sum over k of l^(k)(x_i, x_j).

    Example:
        >>> mean_over_bits(torch.tensor([[[1.0, 3.0]]]))
        tensor([[2.]])
    """
    return approximate_atomic_losses.mean(dim=-1)


def slope_of_products(u: Tensor, y: Tensor, loss_scale: LossScale = "paper", temperature: float = 1.0) -> Tensor:
    """Derivative of 1/K l^(k)(x_i, x_j) by w_k' z_i z_j' w_k: the formula after Eqn (10), with no factor discarded.

    Example:
        >>> u, y = torch.tensor([[1.0, -1.0], [1.0, 1.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> bool((slope_of_products(u, y)[0, 1] < 0).all())
        True
    """
    code_length = u.shape[1]
    sigma = sigma_of_products(u, temperature)
    _, c_prime = constants(y, code_length, loss_scale)
    proportional_to = reweighting(hash_codes(u), y) * c_prime[:, :, None] * (1 - sigma) * sigma
    return 2 * temperature * proportional_to / code_length


def gradient_for_w(slopes: Tensor, z: Tensor, w: Tensor) -> Tensor:
    """Return dQ / dw_k, the sum over i, j of slope_ijk (z_i z_j' + z_j z_i') w_k.

    Eqn (11), that l^(k) has no part in the gradient of another bit's w_k' or of another sample's z_q, is what leaves
    a single sum here and in `gradient_for_z`.

    Args:
        slopes: weights of pairs times `slope_of_products`, (batch, batch, K).
        z: (batch, dimension).
        w: (dimension, K).

    Returns:
        (dimension, K).

    Example:
        >>> gradient_for_w(torch.ones(2, 2, 3), torch.eye(2), torch.ones(2, 3)).shape
        torch.Size([2, 3])
    """
    u = z @ w
    return torch.einsum("ijk,id,jk->dk", slopes, z, u) + torch.einsum("ijk,jd,ik->dk", slopes, z, u)


def gradient_for_z(slopes: Tensor, z: Tensor, w: Tensor) -> Tensor:
    """Return dQ / dz_i, the sum over j, k of slope_ijk w_k w_k' z_j, from the pairs (i, j) and from the pairs (j, i).

    Arguments are those of `gradient_for_w`.

    Returns:
        (batch, dimension).

    Example:
        >>> gradient_for_z(torch.ones(2, 2, 3), torch.eye(2), torch.ones(2, 3)).shape
        torch.Size([2, 2])
    """
    u = z @ w
    return torch.einsum("ijk,dk,jk->id", slopes, w, u) + torch.einsum("jik,dk,jk->id", slopes, w, u)


def pair_weights(y: Tensor, balance_pairs: bool = False) -> Tensor:
    """Weights of the pairs with Y_ij of -1 or 1: all the same, or half of the weight for either kind.

    Example:
        >>> pair_weights(supervision_matrix(torch.tensor([0, 0, 1])), balance_pairs=True)
        tensor([[0.0000, 0.2500, 0.1250],
                [0.2500, 0.0000, 0.1250],
                [0.1250, 0.1250, 0.0000]])
    """
    similar, dissimilar = (y > 0).to(y.dtype), (y < 0).to(y.dtype)
    if balance_pairs and similar.any() and dissimilar.any():
        return 0.5 * similar / similar.sum() + 0.5 * dissimilar / dissimilar.sum()
    pairs = similar + dissimilar
    return pairs / pairs.sum().clamp_min(1)


def loss_and_gradient(u: Tensor, labels: Tensor, departures: Departures) -> LossAndGradient:
    """Compute all of it in float64: Q by Eqn (10), its gradient for u, and Q by Eqn (6).

    Args:
        u: shape (batch, code_length).
        labels: shape (batch,).
        departures: departures from the paper.

    Example:
        >>> u, labels = torch.tensor([[1.0, -1.0], [1.0, 1.0]]), torch.tensor([0, 0])
        >>> loss_and_gradient(u, labels, Departures("paper", 1.0, False)).gradient
        tensor([[-0.1689, -0.0621],
                [-0.1689,  0.0621]], dtype=torch.float64)
    """
    loss_scale, temperature, balance_pairs = departures
    u = u.detach().double()
    y = supervision_matrix(labels).double()
    weights = pair_weights(y, balance_pairs)
    value = objective(mean_over_bits(approximate_atomic_loss(u, y, loss_scale, temperature)), weights)
    slopes = weights[:, :, None] * slope_of_products(u, y, loss_scale, temperature)
    # With w the identity, z is u.
    gradient = gradient_for_z(slopes, u, torch.eye(u.shape[1], dtype=u.dtype))
    return LossAndGradient(value, gradient, objective(atomic_loss(hash_codes(u), y), weights))
