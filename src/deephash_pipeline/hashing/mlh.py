"""MLH: hyperplanes whose codes are close within a class and apart between classes."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.encoder import learned
from deephash_pipeline.hashing.kernels.mlh import Features, Step, Weights, descend
from deephash_pipeline.hashing.linear import LinearHashFunction, feature_mean, hyperplanes_through, project
from deephash_pipeline.hashing.rows import Floats, Ints, row_blocks
from deephash_pipeline.hashing.similarity import PartnerSampler

# These constants are the authors'. Standard deviations of the weights of bits that start, and that start anew:
INITIAL_WEIGHT, RENEWED_WEIGHT = 0.1, 0.01
# A bit starts anew if it took one of its values in a smaller share of cases.
RAREST_VALUE = 0.02
# The bold driver: factors after a stage that was worse, or better, than all before, and where it sets in and ends.
SLOWER, FASTER = 0.5, 1.05
STAGES_AT_FIRST_RATE, LEAST_LEARNING_RATE = 2, 1e-5


Share = Annotated[float, Field(ge=0, le=1)]


class MLH(LinearHashFunction):
    """Minimal loss hashing (Norouzi & Fleet, ICML 2011), as in the authors' later code.

    Codes at Hamming distance m lose max(m - rho + 1, 0) / (K - rho + 1) if they are of one class, and
    max(rho - m + 1, 0) / (rho + 1) if not. As a structural support vector machine does, MLH descends on a bound of
    this loss that is continuous in the weights W: the maximum over codes g, h of loss(g, h) + g . Wx + h . Wx', less
    the same maximum without the loss. Its subgradient needs the maximising codes, which are found exactly.

    Descent is stochastic, over pairs of which a given share is of one class, with momentum, weight decay and a pull
    towards balanced bits. After each stage, but the first two, the bold driver halves the learning rate if bound and
    loss are worse than ever, and raises it by 5 % if both are better than ever. Bits that are nearly constant start
    anew. Features are centred and divided by their root mean square over the training set, so that the authors' step
    sizes fit features of any scale. The defaults are those of the authors' published code, but for `batches_per_stage`.

    Args:
        code_length: number of bits per code, 1 to 4,096.
        radius_share: rho, the largest Hamming distance of similar codes, as a share of the code length, to be rounded.
        similar_share: share of each batch's pairs that are of one class.
        batch_size: pairs in a batch.
        learning_rate: learning rate of the first stages; the bold driver sets it from then on.
        momentum: share of the last move that is made again; half of it in the first stage.
        weight_decay: strength of the pull of all weights to zero.
        balance: strength of the pull of each bit's mean projection to zero.
        stages: the learning rate is set after each; the authors' 2,000 epochs are 80 stages of 25.
        batches_per_stage: 500, where the authors' 25 epochs of MNIST are 15,000. On a network's features of MNIST,
            twice as many gain less than 0.001 in validation mAP at 12 to 48 bits, and half as many lose up to 0.002.
        random_state: seed of the weights and pairs drawn.

    Attributes:
        objective_: float64, shape (stages,), mean over each stage's pairs of the bound, penalties on weights and
            balance included.

    Example:
        >>> import numpy as np
        >>> z = np.random.default_rng(0).normal(size=(100, 8))
        >>> MLH(code_length=6, stages=3, batches_per_stage=10).fit(z, z[:, 0] > 0).objective_.shape
        (3,)
    """

    display_name = "MLH"
    reference = "Norouzi & Fleet, Minimal loss hashing for compact binary codes, ICML 2011"
    supervised = True
    several_labels = True
    objective_: NDArray[np.float64] = learned("stages")
    radius_share: Share = 0.35
    similar_share: Share = 0.5
    batch_size: PositiveInt = 100
    learning_rate: PositiveFloat = 1e-3
    momentum: Annotated[float, Field(ge=0, lt=1)] = 0.9
    weight_decay: NonNegativeFloat = 1e-2
    balance: NonNegativeFloat = 1.0
    stages: PositiveInt = 80
    batches_per_stage: PositiveInt = 500

    def _learn(self, z: NDArray[Any], labels: Ints) -> dict[str, NDArray[Any]]:
        sampler = _PairSamplerOfSeveral(labels) if labels.ndim == 2 else _PairSampler(labels)
        features = _scaled(z)
        generator = np.random.default_rng(self.random_state)
        shape = (z.shape[1] + 1, self.code_length)
        weights = Weights(np.zeros(shape, np.float32), np.zeros(shape, np.float32), np.zeros(shape[1], np.int64))
        objective = self._descend(features, sampler, weights, generator)
        values = weights.values.astype(np.float64)
        arrays = hyperplanes_through(features.centre, values[:-1] / features.scale)
        return {**arrays, "threshold": arrays["threshold"] - values[-1], "objective": objective}

    def _descend(
        self,
        features: Features,
        sampler: "_PairSampler | _PairSamplerOfSeveral",
        weights: Weights,
        generator: np.random.Generator,
    ) -> Floats:
        """Learn the weights, zeros at first; return the objective's course (stages,)."""
        similar = np.arange(self.batch_size) < round(self.similar_share * self.batch_size)
        losses_of_pairs = self._losses()[similar.astype(np.intp)]
        learning_rate = self.learning_rate
        bounds: list[float] = []
        losses: list[float] = []
        for stage in range(self.stages):
            rows = sampler.draw(np.tile(similar, (self.batches_per_stage, 1)), generator)
            # Before the first stage no bit has ever been 1: all of them start.
            share = weights.ones / rows.size
            useless = np.minimum(share, 1 - share) < RAREST_VALUE
            _start(weights, useless, features, RENEWED_WEIGHT if stage else INITIAL_WEIGHT, generator)
            weights.ones[:] = 0
            momentum = self.momentum if stage else self.momentum / 2
            step = Step(*map(np.float32, (learning_rate, momentum, self.weight_decay, self.balance)))
            bound, loss = descend(features, rows, losses_of_pairs, step, weights)
            if stage >= STAGES_AT_FIRST_RATE:
                if bound > min(bounds) and loss > min(losses):
                    learning_rate = max(SLOWER * learning_rate, LEAST_LEARNING_RATE)
                elif bound < min(bounds) and loss < min(losses):
                    learning_rate *= FASTER
            bounds.append(bound)
            losses.append(loss)
        return np.array(bounds)

    def _losses(self) -> NDArray[np.float32]:
        """Losses of dissimilar and of similar pairs by the number of differing bits, shape (2, K + 1)."""
        # Rounded half up, as the authors' language does; 1e-9 makes up for shares that are no binary fractions.
        radius = int(self.radius_share * self.code_length + 0.5 + 1e-9)
        differing = np.arange(self.code_length + 1)
        dissimilar = np.maximum(radius - differing + 1, 0) / (radius + 1)
        similar = np.maximum(differing - radius + 1, 0) / (self.code_length - radius + 1)
        return np.array([dissimilar, similar], dtype=np.float32)


class _PairSampler:
    """Draws pairs of rows of equal or different labels (n,), of at least two classes, not all of one row."""

    def __init__(self, labels: Ints) -> None:
        _, self._class_of_row, self._sizes = np.unique(labels, return_inverse=True, return_counts=True)
        if self._sizes.max() == 1:
            raise InputError("y names each class once, so no pair is similar: give several images of a class")
        self._rows_by_class = np.argsort(self._class_of_row, kind="stable")
        self._starts = np.cumsum(self._sizes) - self._sizes

    def draw(self, similar: NDArray[np.bool_], generator: np.random.Generator) -> Ints:
        """Rows of pairs of the kinds given, (..., 2): each row about as often, its partner any of its kind."""
        rows = len(self._class_of_row)
        first = np.concatenate([generator.permutation(rows) for _ in range(-(-similar.size // rows))])
        first = first[: similar.size].reshape(similar.shape)
        start, size = self._starts[self._class_of_row[first]], self._sizes[self._class_of_row[first]]
        same_class = start + generator.integers(size)
        other_class = generator.integers(rows - size)
        other_class += np.where(other_class >= start, size, 0)
        return np.stack([first, self._rows_by_class[np.where(similar, same_class, other_class)]], axis=-1)


class _PairSamplerOfSeveral:
    """The same for rows with several labels (n, classes); a row without a partner of a kind is passed over."""

    def __init__(self, labels: Ints) -> None:
        self._sampler = PartnerSampler(labels)
        self._with_partners = [np.flatnonzero(partners) for partners in self._sampler.partners_of_rows()]

    def draw(self, similar: NDArray[np.bool_], generator: np.random.Generator) -> Ints:
        """Rows of pairs of the kinds given, (..., 2)."""
        pairs = np.empty((*similar.shape, 2), dtype=np.int64)
        for kind, rows in enumerate(self._with_partners):
            wanted = int(np.count_nonzero(similar == bool(kind)))
            if not wanted:
                continue
            rounds = -(-wanted // len(rows))
            first = np.concatenate([generator.permutation(rows) for _ in range(rounds)])[:wanted]
            drawn = np.stack([first, self._sampler.draw(first, bool(kind), generator)], axis=-1)
            pairs[similar == bool(kind)] = drawn
        return pairs


def _scaled(z: NDArray[Any]) -> Features:
    centre = feature_mean(z)
    squares = sum(float(np.square(z[rows] - centre).sum()) for rows in row_blocks(z))
    scale = float(np.sqrt(squares / z.size))
    if scale <= len(z) * np.finfo(np.float64).eps * np.abs(centre).max():
        raise InputError("X has only equal rows: check the network that gave these features")
    return Features(np.asarray(z), centre, scale)


def _start(
    weights: Weights, bits: NDArray[np.bool_], features: Features, deviation: float, generator: np.random.Generator
) -> None:
    """Give the bits marked in `bits` (K,) random weights, and biases by which half of the rows have a 1."""
    if bits.any():
        drawn = deviation * generator.standard_normal((len(features.centre), np.count_nonzero(bits)))
        directions = drawn / features.scale
        medians = np.median(project(features.z, directions) - features.centre @ directions, axis=0)
        weights.values[:, bits] = np.vstack([drawn, -medians])
        weights.velocity[:, bits] = 0
