"""LDAH: linear discriminants of pairs, each cut where it parts classes best."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from scipy.linalg import eigh

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.encoder import learned
from deephash_pipeline.hashing.linear import LinearHashFunction, feature_mean, project
from deephash_pipeline.hashing.principal_directions import COVARIANCE_ROWS, principal_directions
from deephash_pipeline.hashing.rows import Floats, Ints
from deephash_pipeline.hashing.similarity import PartnerSampler

# Share of the mean second moment that is added to every direction.
LDAH_RIDGE = 1e-6


Count = Annotated[int, Field(ge=1, le=10_000_000)]


class LDAH(LinearHashFunction):
    """LDAHash with the LDA criterion (Strecha, Bronstein, Bronstein & Fua, PAMI 2012).

    With S_P and S_N the second moments of the difference x - x' over pairs of one class and of two classes, the best
    projections bring the former together relative to the latter: S_P v = lambda S_N v, the code_length smallest lambda.
    Each projection v is then cut at the threshold where the fewest pairs are wrong: positive pairs split plus negative
    pairs not split, as shares, minimised exactly over the pairs drawn.

    In expectation S_N is S_P plus a matrix of rank C - 1 for C classes: C - 1 eigenvalues tell something, all others
    are 1 and their directions arbitrary. Drawn pairs scatter these around 1 and so choose among them by chance; bits
    beyond C - 1 are thus mostly noise and mAP falls as the code grows. The authors' "classes" were thousands of points
    in space, so that they never met the limit. Their training code is not public; the defaults are this project's
    choice.

    Args:
        code_length: number of bits per code, 1 to the rank of the centred features.
        positive_pairs: number of pairs of one class to draw; 100,000 are about a hundred per feature at D = 1,024.
        negative_pairs: number of pairs of two classes to draw, as many.
        principal_components: features, if there are more than this, are first reduced to so many principal components;
            1,024 leaves those of the paper's networks for MNIST and CIFAR10 whole.
        random_state: seed of the pairs drawn.

    Attributes:
        eigenvalue_: float64, shape (code_length,), lambda of each bit's direction, ascending.

    Example:
        >>> import numpy as np
        >>> labels = np.arange(90) % 3
        >>> z = np.random.default_rng(0).normal(size=(90, 5)) + 3 * np.eye(3, 5)[labels]
        >>> (LDAH(code_length=4).fit(z, labels).eigenvalue_ < 0.5).tolist()
        [True, True, False, False]
    """

    display_name = "LDAH"
    reference = (
        "Strecha, Bronstein, Bronstein & Fua, LDAHash: improved matching with smaller descriptors, PAMI 2012, "
        "doi:10.1109/TPAMI.2011.103"
    )
    supervised = True
    several_labels = True
    eigenvalue_: NDArray[np.float64] = learned("code_length")
    positive_pairs: Count = 100_000
    negative_pairs: Count = 100_000
    principal_components: PositiveInt = 1024

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        generator = np.random.default_rng(self.random_state)
        positive, negative = draw_class_pairs(labels, self.positive_pairs, self.negative_pairs, generator)
        principal = principal_directions(z, feature_mean(z), self.principal_components)
        if self.code_length > principal.shape[1]:
            raise InputError(
                f"code_length is {self.code_length}, but X of shape {z.shape} gives {principal.shape[1]} directions "
                f"(principal_components is {self.principal_components}), and each bit takes one: "
                "shorten the code, or raise principal_components if it is the smaller"
            )
        eigenvalue, discriminants = self._learn_discriminants(project(z, principal), positive, negative)
        # Rounded before the thresholds are sought, which thus are exact for the projection that encodes.
        projection = (principal @ discriminants).astype(np.float32)
        projected = project(z, projection.astype(np.float64))
        threshold = [best_threshold(bit[positive], bit[negative]) for bit in projected.T]
        return {"projection": projection, "threshold": np.array(threshold), "eigenvalue": eigenvalue}

    def _learn_discriminants(self, components: Floats, positive: Ints, negative: Ints) -> tuple[Floats, Floats]:
        """The K smallest lambda, ascending, and their v as columns, for features given as components (n, m)."""
        moment_positive = _second_moment(components, positive)
        moment_negative = _second_moment(components, negative)
        # On both sides: a direction without variance then has lambda = 1, where a ridge on S_N alone would make it 0,
        # the best of all.
        ridge = LDAH_RIDGE * np.trace(moment_negative) / len(moment_negative) * np.eye(len(moment_negative))
        wanted = (0, self.code_length - 1)
        eigenvalue, discriminants = eigh(moment_positive + ridge, moment_negative + ridge, subset_by_index=wanted)
        return eigenvalue, discriminants


def draw_class_pairs(
    labels: Ints, positive_pairs: int, negative_pairs: int, generator: np.random.Generator
) -> tuple[Ints, Ints]:
    """Draw pairs of rows of one class, and pairs of rows of two classes, with replacement.

    Args:
        labels: labels of at least two classes, shape (n,); or multi-hot, shape (n, classes).
        positive_pairs: number of pairs of one class.
        negative_pairs: number of pairs of two classes.
        generator: source of the draws.

    Returns:
        Positive pairs, shape (positive_pairs, 2), and negative pairs, shape (negative_pairs, 2), either uniform over
        all that exist.

    Raises:
        InputError: there are no pairs of one class, or none of two.

    Example:
        >>> labels = np.array([0, 0, 1, 1])
        >>> positive, negative = draw_class_pairs(labels, 3, 2, np.random.default_rng(0))
        >>> np.ptp(labels[positive], axis=1).tolist()
        [0, 0, 0]
    """
    if labels.ndim == 2:
        sampler, drawn = PartnerSampler(labels), []
        # Of similar pairs a few may be a row with itself.
        for similar, pairs in ((True, positive_pairs), (False, negative_pairs)):
            partners = sampler.partners_of_rows()[int(similar)]
            first = generator.choice(len(partners), pairs, p=partners / partners.sum())
            drawn.append(np.stack([first, sampler.draw(first, similar, generator)], axis=1))
        return drawn[0], drawn[1]
    sizes = np.unique(labels, return_counts=True)[1]
    if sizes.max() == 1:
        raise InputError("y names each class once, so no pair is positive: give several images of a class")
    # Places count along by_class, where the rows of a class are neighbours.
    by_class = np.argsort(labels, kind="stable")
    size, start = np.repeat(sizes, sizes), np.repeat(np.cumsum(sizes) - sizes, sizes)

    def draw(pairs: int, partners: Ints) -> tuple[Ints, Ints]:
        first = generator.choice(len(labels), pairs, p=partners / partners.sum())
        return first, generator.integers(partners[first])

    first, second = draw(positive_pairs, size - 1)
    second += start[first]
    # The partners of a place are the others of its class, or all places outside it: each count skips over these.
    positive = np.stack([first, second + (second >= first)], axis=1)
    first, second = draw(negative_pairs, len(labels) - size)
    negative = np.stack([first, second + np.where(second >= start[first], size[first], 0)], axis=1)
    return by_class[positive], by_class[negative]


def best_threshold(positive: Floats, negative: Floats) -> float:
    """The threshold t of one bit, 1[y >= t], that treats the fewest pairs wrongly.

    Wrong are a positive pair whose two bits differ and a negative pair whose bits agree. The sum of both shares is
    constant between neighbouring projections, so that trying one t for each finds the least sum exactly.

    Args:
        positive: projections of the positive pairs, shape (p, 2).
        negative: projections of the negative pairs, shape (q, 2).

    Returns:
        The t half-way between two neighbouring projections; the lowest of several that are equally good.

    Example:
        >>> best_threshold(positive=np.array([[2.0, 3.0]]), negative=np.array([[0.0, 3.0]]))
        1.0
    """
    p, q = len(positive), len(negative)
    # t splits a pair from just above its smaller to its larger projection. Both shares times p q are integers, so
    # that nothing is rounded.
    ends = [positive.min(axis=1), positive.max(axis=1), negative.min(axis=1), negative.max(axis=1)]
    projections, place = np.unique(np.concatenate(ends), return_inverse=True)
    changes = np.zeros(len(projections), dtype=np.int64)
    np.add.at(changes, place, np.repeat(np.array([q, -q, -p, p]), [p, p, q, q]))
    at_projection = np.cumsum(changes) - changes
    best = int(at_projection.argmin())
    below = projections[best - 1] if best else projections[0] - 1.0
    return float((below + projections[best]) / 2)


def _second_moment(components: Floats, pairs: Ints) -> Floats:
    """Mean of (x - x')(x - x')' over pairs of rows of `components` (n, m), shape (m, m)."""
    total: Floats = np.zeros((components.shape[1], components.shape[1]))
    for block in np.array_split(pairs, -(-len(pairs) // COVARIANCE_ROWS)):
        differences = components[block[:, 0]] - components[block[:, 1]]
        total += differences.T @ differences
    total /= len(pairs)
    return total
