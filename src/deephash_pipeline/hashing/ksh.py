"""KSH: kernel projections whose bits, one after another, fit the inner products of codes to the labels."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt, PositiveInt
from scipy.linalg import eigh

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.machine_code import compiled
from deephash_pipeline.hashing.anchors import ANCHOR_RIDGE, KernelHashFunction, draw_anchors, signs_of_projections
from deephash_pipeline.hashing.rows import Floats, Ints
from deephash_pipeline.hashing.similarity import LabelSets

# The authors' test: refinement ends once the relaxed agreement changes by no more than this per labelled sample.
TOLERANCE = 1e-2


class KSH(KernelHashFunction):
    """Supervised hashing with kernels (Liu, Wang, Ji, Jiang & Chang, CVPR 2012).

    Bit b of x is the sign of kbar(x) . a_b, where kbar(x) holds the Gaussian kernels between x and some anchors, less
    their means over the training set. The inner product of two codes of K values 1 and -1 is to be K for samples of one
    class and -K otherwise; in least squares, each bit y in its turn has to maximise its agreement y' S y with S, what
    the bits before have left of that target. Without the sign this is an eigenproblem; its solution is refined with a
    sigmoid in the sign's place, by Nesterov's accelerated gradient, and the refinement kept if its signs agree more.

    As the target depends on K, the bits of a shorter code are not the first ones of a longer code. No length is out of
    reach. The labelled samples are taken from all classes in turn: among 2,000 rows drawn at random, rare ones of the
    397 classes of SUN397 would have no pair to learn from. The defaults are those of the authors' published
    demonstration.

    Args:
        code_length: number of bits per code, 1 to 4,096.
        anchors: number of training rows that the kernel compares with; all rows if there are fewer.
        labelled_samples: number of training rows whose classes are used; all rows if there are fewer. More of them
            raise mAP.
        iterations: the most steps that refine a bit; 0 leaves each bit as its eigenproblem gives it.
        random_state: seed of the anchors and labelled samples drawn.

    Example:
        >>> import numpy as np
        >>> labels = np.arange(60) % 2
        >>> z = np.random.default_rng(0).normal(size=(60, 3)) + 5 * labels[:, np.newaxis]
        >>> codes = KSH(code_length=4, anchors=10).fit(z, labels).transform(z)
        >>> bool((codes[0] == codes[2]).all()), bool((codes[0] == codes[1]).any())
        (True, False)
    """

    display_name = "KSH"
    reference = (
        "Liu, Wang, Ji, Jiang & Chang, Supervised hashing with kernels, CVPR 2012, doi:10.1109/CVPR.2012.6247912"
    )
    several_labels = True
    anchors: PositiveInt = 300
    labelled_samples: Annotated[int, Field(ge=2)] = 2000
    iterations: NonNegativeInt = 500

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        generator = np.random.default_rng(self.random_state)
        labelled = draw_in_turn(labels, self.labelled_samples, generator)
        anchors = draw_anchors(z, self.anchors, generator)
        similarity = Similarity(labels[labelled], self.code_length)
        return anchors.arrays(self._learn_projection(anchors.kernels(z[labelled]), similarity))

    def _learn_projection(self, kernels: Floats, similarity: "Similarity") -> Floats:
        """The a_b as columns (m, K), from the centred kernels (l, m) of the labelled samples."""
        projection = np.empty((kernels.shape[1], self.code_length))
        for bit in range(self.code_length):
            start = spectral_start(kernels, similarity)
            refined = refine(start, kernels, similarity, self.iterations)
            # Of equals, max takes the first.
            chosen = max(start, refined, key=lambda a: similarity.agreement(signs_of_projections(kernels @ a)))
            similarity.deflate(signs_of_projections(kernels @ chosen))
            projection[:, bit] = chosen
        return projection


def draw_in_turn(labels: Ints, count: int, generator: np.random.Generator) -> Ints:
    """Draw rows from all classes in turn, the rows of each in random order, until there are `count` or no more.

    Where rows have several labels, they are drawn at random.

    Args:
        labels: classes, shape (n,); or multi-hot, shape (n, classes).
        count: the number of rows wanted.
        generator: source of the order.

    Returns:
        Rows, each once, shape (min(count, n),).

    Raises:
        InputError: no two of the rows drawn are of one class, or share a label.

    Example:
        >>> labels = np.array([0, 0, 0, 1, 1, 2])
        >>> labels[draw_in_turn(labels, 4, np.random.default_rng(0))].tolist()
        [0, 1, 2, 0]
    """
    if labels.ndim == 2:
        drawn = generator.permutation(len(labels))[:count]
        if labels[drawn].sum(axis=0).max() < 2:
            raise InputError(
                f"no two of the {len(drawn)} labelled samples share a label: raise labelled_samples, or give images "
                "that share labels"
            )
        return drawn
    classes, sizes = np.unique(labels, return_counts=True)
    if sizes.max() == 1 or count <= len(classes):
        raise InputError(
            f"y names {len(classes)} classes, {sizes.max()} images at most of each, and {count} labelled samples "
            "have no two of one class: raise labelled_samples above the number of classes, or give more images of each"
        )
    shuffled = generator.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    turn = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return by_class[np.argsort(turn, kind="stable")[:count]]


class Similarity:
    """S = K Y - sum of y y' over the bits y learned so far; Y is 1 for two similar samples and -1 otherwise.

    S is kept as F diag(w) F', where F has a column for each class, one of ones and one for each bit learned: a product
    with it then costs l (C + 1 + b) for l samples instead of l^2. Of samples with several labels Y is a matrix between
    the different sets of labels, and F has a column for each of its eigenvectors.

    Args:
        labels: classes of the samples, shape (l,); or multi-hot, shape (l, classes).
        code_length: K.

    Example:
        >>> import numpy as np
        >>> Similarity(np.array([0, 0, 1]), code_length=2).multiply(np.array([1.0, 0.0, 0.0]))
        array([ 2.,  2., -2.])
    """

    def __init__(self, labels: Ints, code_length: int) -> None:
        if labels.ndim == 2:
            sets = LabelSets.of(labels)
            eigenvalues, eigenvectors = eigh(2.0 * sets.similar - 1)
            self.factors = eigenvectors[sets.of_row]
            self.weights = code_length * eigenvalues
        else:
            of_class = np.equal.outer(labels, np.unique(labels)).astype(np.float64)
            self.factors = np.column_stack([of_class, np.ones(len(labels))])
            self.weights = code_length * np.append(np.full(of_class.shape[1], 2.0), -1.0)
        self.factors_transposed = self.factors.T.copy()

    def multiply(self, values: Floats) -> Floats:
        """S v for values v of shape (l,)."""
        return weighted_sum(self.weights * weighted_sum(values, self.factors), self.factors_transposed)

    def agreement(self, values: Floats) -> float:
        """The quadratic form v' S v for values v of shape (l,)."""
        return float(self.weights @ weighted_sum(values, self.factors) ** 2)

    def deflate(self, bit: Floats) -> None:
        """Subtract y y' for a bit y of values 1 and -1, shape (l,)."""
        self.factors = np.column_stack([self.factors, bit])
        self.factors_transposed = np.vstack([self.factors_transposed, bit])
        self.weights = np.append(self.weights, -1.0)


def spectral_start(kernels: Floats, similarity: Similarity) -> Floats:
    """The a that maximises a' Kl' S Kl a where a' Kl' Kl a = l: the top solution of a generalized eigenproblem.

    Args:
        kernels: Kl, centred kernels of the labelled samples, shape (l, m).
        similarity: S.

    Returns:
        Coefficients a, shape (m,).
    """
    moment = kernels.T @ kernels
    moment += ANCHOR_RIDGE * np.trace(moment) / len(moment) * np.eye(len(moment))
    factors, top = kernels.T @ similarity.factors, len(moment) - 1
    _, directions = eigh((factors * similarity.weights) @ factors.T, moment, subset_by_index=(top, top))
    return np.asarray(np.sqrt(len(kernels)) * directions[:, 0])


def refine(start: Floats, kernels: Floats, similarity: Similarity, iterations: int) -> Floats:
    """Climb the relaxed agreement phi' S phi, phi = 2 / (1 + exp(-Kl a)) - 1 = tanh(Kl a / 2).

    Nesterov's accelerated gradient: each step goes uphill from a point ahead of the last one and is halved, for good,
    until it gains at least half of what the gradient promises.

    Args:
        start: coefficients a to start from, shape (m,).
        kernels: Kl, centred kernels of the labelled samples, shape (l, m).
        similarity: S.
        iterations: the most steps.

    Returns:
        Coefficients where the steps ended, shape (m,).
    """
    anchors, kernels_transposed = len(start), kernels.T.copy()

    def with_projections(coefficients: Floats) -> Floats:
        # a and Kl a in one vector: what is linear in a moves both, without another product with Kl.
        return np.concatenate([coefficients, weighted_sum(coefficients, kernels_transposed)])

    def relax(point: Floats) -> Floats:
        return np.tanh(point[anchors:] / 2)

    point = ahead = with_projections(start)
    reached = similarity.agreement(relax(point))
    step = momentum = 1.0
    for _ in range(iterations):
        phi = relax(ahead)
        gradient = weighted_sum(similarity.multiply(phi) * (1 - phi**2), kernels)
        uphill, slope, base = with_projections(gradient), gradient @ gradient, similarity.agreement(phi)
        while (gained := similarity.agreement(relax(ahead + step * uphill))) < base + step / 2 * slope:
            step /= 2
        previous, point = point, ahead + step * uphill
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = point + (momentum - 1) / grown * (point - previous)
        momentum = grown
        if abs(gained - reached) <= TOLERANCE * len(kernels):
            break
        reached = gained
    return point[:anchors]


@compiled()
def weighted_sum(weights: Floats, rows: Floats) -> Floats:
    """The product weights @ rows, shape (columns,), for weights (n,) and rows (n, columns).

    As fast as BLAS on one core. BLAS would share even so small a product among all cores, ten thousands of times in a
    fit: that gains little, and waits many times as long where other processes occupy the cores.

    Example:
        >>> weighted_sum(np.array([2.0, 1.0]), np.array([[1.0, 0.0], [3.0, 1.0]]))
        array([5., 1.])
    """
    total = np.zeros(rows.shape[1])
    for row in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            total[column] += weights[row] * rows[row, column]
    return total
