import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.bre import BRE, _list_pairs
from deephash_pipeline.hashing.kernels.bre import Pairs, best_weight, couple, project_rows, sweep_bits

ALL_PAIRS = {"pair_share": 1.0, "training_rows": 300}


@pytest.fixture(scope="module")
def labels():
    return np.arange(300) % 3


def slow_objective(bits, pairs, distances):
    """Half the sum of (Hamming distance / K - d)^2 over the pairs, for bits (rows, K) and distances (rows, rows)."""
    return sum((float(np.mean(bits[i] != bits[j])) - float(distances[i, j])) ** 2 for i, j in pairs) / 2


def slow_distances(z, labels, centre):
    if labels is not None:
        return np.array([[float(one != other) for other in labels] for one in labels])
    points = z - z.mean(axis=0) if centre else z
    points = points / np.linalg.norm(points, axis=1, keepdims=True)
    distances = np.array([[np.sum((one - other) ** 2) / 2 for other in points] for one in points])
    return np.asarray(distances / distances.max())


class Problem:
    """Rows, pairs, distances, anchors and weights drawn at random, and the pairs as the kernel wants them."""

    def __init__(self, seed, integral):
        generator = np.random.default_rng(seed)
        rows, code_length, anchors = 14, 3, 4
        points = generator.normal(size=(rows, 5))
        self.kernel = points @ points.T
        # Some rows stand at a right angle to others.
        self.kernel[generator.random((rows, rows)) < 0.1] = 0.0
        self.kernel = np.triu(self.kernel) + np.triu(self.kernel, 1).T
        self.anchors = np.array([generator.choice(rows, anchors, replace=False) for _ in range(code_length)])
        self.weights = generator.normal(size=self.anchors.shape)
        self.pairs = [(i, int(j)) for i in range(rows) for j in generator.choice(rows, 4, replace=False) if i != j]
        self.distances = generator.random((rows, rows))
        self.distances = (self.distances + self.distances.T) / 2
        if integral:
            self.distances = np.round(self.distances)

    def bits(self, weights):
        columns = [self.kernel[:, at] @ of_bit >= 0 for at, of_bit in zip(self.anchors, weights, strict=True)]
        return np.stack(columns, axis=1)

    def objective(self, weights):
        return slow_objective(self.bits(weights), self.pairs, self.distances)

    def listed_pairs(self, weights):
        bits = self.bits(weights)
        entries = sorted([*self.pairs, *((j, i) for i, j in self.pairs)])
        first = [sum(row < i for row, _ in entries) for i in range(len(bits) + 1)]
        excess = [np.sum(bits[i] != bits[j]) - bits.shape[1] * self.distances[i, j] for i, j in entries]
        return Pairs(np.array(first), np.array([j for _, j in entries]), np.array(excess))


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), integral=st.booleans())
def test_a_weight_is_set_to_the_best_of_all_midpoints_between_thresholds(seed, integral):
    problem = Problem(seed, integral)
    bit, position = 1, 2
    projection = project_rows(problem.kernel, problem.anchors[bit], problem.weights[bit])
    kernel_values = problem.kernel[problem.anchors[bit, position]]
    pairs = problem.listed_pairs(problem.weights)
    coupling = couple(np.where(projection >= 0, 1.0, -1.0), pairs)
    found = best_weight(kernel_values, projection, problem.weights[bit, position], pairs, coupling)

    def objective_at(weight):
        weights = problem.weights.copy()
        weights[bit, position] = weight
        return problem.objective(weights)

    movable = kernel_values != 0
    thresholds = np.sort(problem.weights[bit, position] - projection[movable] / kernel_values[movable])
    midpoints = [thresholds[0] - 1e-6, *(thresholds[:-1] + thresholds[1:]) / 2, thresholds[-1] + 1e-6]
    objectives = [objective_at(midpoint) for midpoint in midpoints]
    assert objective_at(found) == pytest.approx(min(objectives), abs=1e-9)
    assert objective_at(found) <= objective_at(problem.weights[bit, position]) + 1e-9
    assert np.abs(np.array(midpoints) - found).min() < 2e-6


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), integral=st.booleans())
def test_sweeps_keep_the_excess_of_all_pairs_up_to_date_and_never_raise_the_objective(seed, integral):
    problem = Problem(seed, integral)
    weights = problem.weights.copy()
    pairs = problem.listed_pairs(weights)
    objectives = [problem.objective(weights)]
    for position in (0, 3, 1, 0):
        sweep_bits(problem.kernel, problem.anchors, weights, np.full(3, position), pairs)
        np.testing.assert_allclose(pairs.excess, problem.listed_pairs(weights).excess, atol=1e-12)
        objectives.append(problem.objective(weights))
    assert (np.diff(objectives) <= 1e-12).all()


def test_an_anchor_at_a_right_angle_to_all_rows_keeps_its_weight():
    problem = Problem(3, integral=True)
    problem.kernel[problem.anchors[0, 0], :] = problem.kernel[:, problem.anchors[0, 0]] = 0.0
    weights = problem.weights.copy()
    pairs = problem.listed_pairs(weights)
    sweep_bits(problem.kernel, problem.anchors, weights, np.zeros(3, dtype=np.int64), pairs)
    assert weights[0, 0] == problem.weights[0, 0]


def test_a_weight_stays_if_a_row_that_counts_as_immovable_would_move_and_spoil_the_gain():
    kernel = np.zeros((5, 5))
    kernel[3, :3] = 1e-7, 1.0, 0.0
    kernel[4, :3] = -4.9e-8, 0.0, 1.0
    weights = np.array([[0.5, 1.0]])
    # All bits are 1. Row 1 is to differ from row 2, and three times as much row 0 is to equal it.
    partner, excess = np.array([2, 2, 2, 2, 0, 0, 0, 1]), np.array([0.0, 0, 0, -1, 0, 0, 0, -1])
    pairs = Pairs(np.array([0, 3, 4, 8, 8, 8]), partner, excess.copy())
    sweep_bits(kernel, np.array([[3, 4]]), weights, np.zeros(1, dtype=np.int64), pairs)
    np.testing.assert_array_equal(weights, [[0.5, 1.0]])
    np.testing.assert_array_equal(pairs.excess, excess)


@pytest.mark.parametrize("supervised", [True, False])
@pytest.mark.parametrize("centre", [True, False])
def test_the_stored_hyperplanes_have_the_objective_of_the_anchors_they_were_made_of(supervised, centre, z, labels):
    exact, classes = z[:60].astype(np.float64), labels[:60]
    hash_function = BRE(6, random_state=1, supervised=supervised, centre=centre, **ALL_PAIRS).fit(exact, classes)
    distances = slow_distances(exact, classes if supervised else None, centre)
    pairs = [(i, j) for i in range(60) for j in range(60) if i != j]
    expected = slow_objective(hash_function.transform(exact), pairs, distances)
    assert hash_function.objective_[-1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("supervised", [True, False])
def test_learning_never_raises_the_objective_and_ends_by_the_tolerance(supervised, z, labels):
    gains = -np.diff(BRE(12, random_state=2, supervised=supervised, tolerance=0.2).fit(z, labels).objective_)
    assert len(gains) > 1
    assert (gains[:-1] > 0.2).all()
    assert -1e-9 <= gains[-1] <= 0.2


def test_learning_ends_after_the_greatest_number_of_sweeps(z, labels):
    assert BRE(12, tolerance=0.0, maximum_sweeps=3).fit(z, labels).objective_.shape == (4,)


def test_a_pair_is_listed_at_both_of_its_rows_and_no_row_is_paired_with_itself():
    partners, bits = np.array([[0, 1], [2, 0], [0, 2]]), np.array([[True, False, False], [True, False, True]])
    pairs = _list_pairs(partners, bits, np.array([[0.0, 0.5, 0.25], [0.5, 0.0, 1.0], [0.25, 1.0, 0.0]]))
    entries = [(i, int(j)) for i in range(3) for j in pairs.partner[pairs.first[i] : pairs.first[i + 1]]]
    assert sorted(entries) == [(0, 1), (0, 1), (0, 2), (1, 0), (1, 0), (1, 2), (2, 0), (2, 1)]
    excess = {(0, 1): 1.0, (0, 2): 0.5, (1, 2): -1.0}
    assert list(pairs.excess) == [excess[min(i, j), max(i, j)] for i, j in entries]


def test_rows_are_paired_with_a_twentieth_of_those_learned_from(z):
    def first_objective(pair_share):
        return float(BRE(12, random_state=5, supervised=False, pair_share=pair_share).fit(z).objective_[0])

    assert first_objective(0.05) == pytest.approx(first_objective(1.0) / 20, rel=0.1)


def test_a_single_class_in_the_rows_learned_from_is_refused(z):
    labels = np.zeros(300, dtype=np.int64)
    labels[np.random.default_rng(0).permutation(300)[-1]] = 1
    with pytest.raises(InputError, match=r"^y names one class only in the 20 rows that BRE learns from"):
        BRE(12, training_rows=20).fit(z, labels)


@pytest.mark.parametrize("rows", [2, 50])
@pytest.mark.parametrize("centre", [True, False])
def test_rows_without_a_difference_are_refused(rows, centre):
    with pytest.raises(InputError, match=rf"^X has the same direction in all {rows} rows that BRE learns from"):
        BRE(4, supervised=False, centre=centre).fit(np.full((rows, 3), 0.1))
