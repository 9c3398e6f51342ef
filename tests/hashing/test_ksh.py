import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eig

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.anchors import distances_to_anchors, signs_of_projections
from deephash_pipeline.hashing.ksh import KSH, Similarity, draw_in_turn

LABELS = np.arange(300) % 5
SMALL = {"anchors": 15, "labelled_samples": 100}


@pytest.fixture(scope="module")
def z():
    """300 rows of 12 features around 5 class means that overlap."""
    generator = np.random.default_rng(11)
    return (generator.normal(size=(5, 12))[LABELS] + generator.normal(size=(300, 12)) + 1.0).astype(np.float32)


def slow_similarity(labels, code_length):
    return np.array([[code_length if a == b else -code_length for b in labels] for a in labels], dtype=np.float64)


def slow_kernels(z, anchors, training):
    """Gaussian kernels centred by their means over the training rows, each distance by itself."""

    def distances(rows):
        return np.array([[math.dist(row.tolist(), anchor.tolist()) ** 2 for anchor in anchors] for row in rows])

    of_training = distances(training)
    bandwidth = of_training.mean()
    return np.exp(-distances(z) / (2 * bandwidth)) - np.exp(-of_training / (2 * bandwidth)).mean(axis=0)


def slow_refinement(start, kernels, similarity):
    """The authors' descent of g(a) = -phi(Kl a)' S phi(Kl a), with all of S and of Kl in each product."""

    def phi(a):
        with np.errstate(over="ignore"):
            return 2 / (1 + np.exp(-kernels @ a)) - 1

    def cost(a):
        return float(-phi(a) @ similarity @ phi(a))

    beta, t = 1.0, [0.0, 1.0]
    points = [start, start]
    costs = [cost(start)]
    for _ in range(500):
        ahead = points[-1] + (t[-2] - 1) / t[-1] * (points[-1] - points[-2])
        gradient = -kernels.T @ ((similarity @ phi(ahead)) * (1 - phi(ahead) ** 2))
        while cost(ahead - gradient / beta) > cost(ahead) - gradient @ gradient / (2 * beta):
            beta *= 2
        points.append(ahead - gradient / beta)
        costs.append(cost(points[-1]))
        t.append((1 + math.sqrt(1 + 4 * t[-1] ** 2)) / 2)
        if abs(costs[-1] - costs[-2]) / len(kernels) <= 1e-2:
            break
    return points[-1]


def slow_projection(kernels, labels, code_length):
    """Coefficients of all bits, and for each bit whether its refinement was kept."""
    similarity = slow_similarity(labels, code_length)
    moment = kernels.T @ kernels
    moment += 1e-8 * np.trace(moment) / len(moment) * np.eye(len(moment))
    columns, kept = [], []
    for _ in range(code_length):
        values, vectors = eig(kernels.T @ similarity @ kernels, moment)
        start = vectors[:, values.real.argmax()].real
        start *= math.sqrt(len(kernels) / (start @ moment @ start))
        refined = slow_refinement(start, kernels, similarity)
        first, second = (np.where(kernels @ a >= 0, 1.0, -1.0) for a in (start, refined))
        kept.append(bool(second @ similarity @ second > first @ similarity @ first))
        bit = second if kept[-1] else first
        columns.append(refined if kept[-1] else start)
        similarity = similarity - np.outer(bit, bit)
    return np.stack(columns, axis=1), kept


def test_codes_equal_those_of_a_slow_transcription(z):
    hash_function = KSH(8, random_state=4, anchors=15, labelled_samples=300).fit(z, LABELS)
    kernels = slow_kernels(z, hash_function.anchors_, z)
    projection, kept = slow_projection(kernels, LABELS, 8)
    assert any(kept)
    expected = kernels @ projection >= 0
    # An eigenvector's sign is open, and with it which value a bit has: codes of the negated bit serve as well.
    equal = (hash_function.transform(z) == expected).mean(axis=0)
    assert (np.maximum(equal, 1 - equal) > 0.99).all()
    coefficients = hash_function.projection_ * np.where(equal > 0.5, 1, -1)
    np.testing.assert_allclose(coefficients, projection, rtol=1e-4, atol=1e-4 * np.abs(projection).max())


def test_distances_are_never_negative_however_sums_round():
    rows = np.random.default_rng(2).lognormal(sigma=3.0, size=(100, 500)).astype(np.float32)
    distances = distances_to_anchors(rows, rows)
    assert (distances >= 0).all()
    expected = ((rows[:, np.newaxis].astype(np.float64) - rows) ** 2).sum(axis=2)
    np.testing.assert_allclose(distances, expected, rtol=1e-12, atol=1e-3)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), samples=st.integers(2, 20), code_length=st.integers(1, 48), bits=st.integers(0, 5))
def test_similarity_in_factors_equals_the_matrix(seed, samples, code_length, bits):
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, 4, samples)
    matrix, factored = slow_similarity(labels, code_length), Similarity(labels, code_length)
    for _ in range(bits):
        bit = signs_of_projections(generator.normal(size=samples))
        matrix -= np.outer(bit, bit)
        factored.deflate(bit)
    values = generator.normal(size=samples)
    np.testing.assert_allclose(factored.multiply(values), matrix @ values, atol=1e-9)
    np.testing.assert_allclose(factored.agreement(values), values @ matrix @ values, atol=1e-9)
    # With bits all numbers are whole, and sums of them exact.
    bit = signs_of_projections(values)
    assert factored.agreement(bit) == bit @ matrix @ bit


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=60), st.integers(8, 70), st.integers(0, 2**32))
def test_labelled_samples_come_from_all_classes_in_turn(classes, count, seed):
    labels = np.array([*classes, -3, 3, 3])
    rows = draw_in_turn(labels, count, np.random.default_rng(seed))
    assert len(rows) == len(set(rows.tolist())) == min(count, len(labels))
    drawn = {c: int((labels[rows] == c).sum()) for c in set(labels.tolist())}
    left = {c for c in drawn if drawn[c] < (labels == c).sum()}
    assert all(drawn[c] >= max(drawn.values()) - 1 for c in left)


def test_fewer_rows_than_anchors_and_samples_are_all_used(z):
    hash_function = KSH(48).fit(z[:20], LABELS[:20])
    assert hash_function.anchors_.shape == (20, 12)
    assert hash_function.transform(z).shape == (300, 48)


def test_equal_anchors_do_no_harm(z):
    copied = np.concatenate([z[:40]] * 3)
    labels = np.concatenate([LABELS[:40]] * 3)
    codes = KSH(12).fit(copied, labels).transform(copied)
    assert len(np.unique(codes, axis=0)) <= 40
    assert codes.any(axis=0).all() and not codes.all(axis=0).any()


def test_labelled_samples_without_pairs_are_refused(z):
    message = r"^y names 100 classes, 3 images at most of each, and 100 labelled .* raise labelled_samples"
    with pytest.raises(InputError, match=message):
        KSH(4, **SMALL).fit(z, np.arange(300) % 100)
