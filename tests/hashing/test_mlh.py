from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from deephash_pipeline.hashing import mlh
from deephash_pipeline.hashing.kernels.mlh import Features, Step, Weights, descend, infer
from deephash_pipeline.hashing.mlh import MLH

# Exact in float32, with many ties and zeros.
EIGHTHS = st.integers(-24, 24).map(lambda eighths: eighths / 8)
BRIEF = {"stages": 4, "batches_per_stage": 20}


@pytest.fixture(scope="module")
def labels():
    return np.arange(300) % 3


def slow_inference(first, second, losses):
    """The largest loss(g, h) + g . a + h . b, and its g and h, by trying all pairs of codes."""
    codes = [np.array(code) for code in product((-1.0, 1.0), repeat=len(first))]
    candidates = ((losses[np.sum(g != h)] + g @ first + h @ second, g, h) for g, h in product(codes, codes))
    return max(candidates, key=lambda candidate: candidate[0])


def slow_losses(code_length, radius, similar):
    distances = range(code_length + 1)
    if similar:
        return np.array([max(m - radius + 1, 0) / (code_length - radius + 1) for m in distances])
    return np.array([max(radius - m + 1, 0) / (radius + 1) for m in distances])


def slow_batch(x, losses, step, weights, velocity):
    """Mean bound and loss, and the new weights (K, D + 1) and velocity, for pairs x (pairs, 2, D + 1)."""
    rate, momentum, decay, balance = map(float, step)
    mean = np.mean([weights @ one for one, _ in x], axis=0)
    gradient, bound, loss = np.zeros_like(weights), 0.0, 0.0
    for (one, other), losses_of_pair in zip(x, losses, strict=True):
        a, b = weights @ one, weights @ other
        sign_a, sign_b = np.where(a >= 0, 1.0, -1.0), np.where(b >= 0, 1.0, -1.0)
        greatest, g, h = slow_inference(a, b, losses_of_pair)
        gradient += np.outer(sign_a - g - balance * np.clip(mean, -0.5, 0.5), one) + np.outer(sign_b - h, other)
        bound += greatest - sign_a @ a - sign_b @ b
        loss += losses_of_pair[np.sum(sign_a != sign_b)]
    velocity = momentum * velocity + rate * gradient / len(x) - rate * decay * weights
    penalty = decay / 2 * np.sum(weights**2) + balance / 2 * np.sum(mean**2)
    return bound / len(x) + penalty, loss / len(x) + penalty, weights + velocity, velocity


@st.composite
def projections_and_losses(draw):
    code_length = draw(st.integers(1, 6))
    projections = draw(arrays(np.float32, (2, code_length), elements=EIGHTHS))
    return projections, draw(arrays(np.float32, code_length + 1, elements=EIGHTHS))


@settings(max_examples=60, deadline=None)
@given(projections_and_losses())
def test_inference_finds_the_best_of_all_pairs_of_codes(projections_and_losses):
    projections, losses = projections_and_losses
    codes = np.empty_like(projections)
    greatest = infer(projections, losses, codes)
    (a, b), (g, h) = projections.astype(np.float64), codes.astype(np.float64)
    assert greatest == slow_inference(a, b, losses.astype(np.float64))[0]
    assert set(codes.flat) <= {-1.0, 1.0}
    assert losses[np.sum(g != h)] + g @ a + h @ b == greatest


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_batches_equal_those_of_a_slow_transcription(seed):
    generator = np.random.default_rng(seed)
    z = generator.normal(size=(20, 5)) + 3
    features = Features(z, z.mean(axis=0), 1.7)
    rows = generator.integers(20, size=(3, 6, 2))
    losses = np.array([slow_losses(4, 1, similar=pair < 3) for pair in range(6)])
    step = Step(*map(np.float32, (0.05, 0.9, 0.01, 1.0)))
    values, velocity = generator.normal(size=(2, 4, 6))
    weights = Weights(values.T.astype(np.float32), velocity.T.astype(np.float32), np.zeros(4, np.int64))
    bound, loss = descend(features, rows, losses.astype(np.float32), step, weights)

    scaled = np.column_stack([(z - z.mean(axis=0)) / 1.7, np.ones(20)])
    bounds, true_losses, ones = [], [], np.zeros(4)
    for batch in rows:
        ones += (scaled[batch.ravel()] @ values.T >= 0).sum(axis=0)
        of_batch = slow_batch(scaled[batch], losses, step, values, velocity)
        bounds.append(of_batch[0])
        true_losses.append(of_batch[1])
        values, velocity = of_batch[2:]
    np.testing.assert_allclose(weights.values, values.T, atol=1e-4)
    np.testing.assert_allclose(weights.velocity, velocity.T, atol=1e-4)
    np.testing.assert_array_equal(weights.ones, ones)
    assert bound == pytest.approx(np.mean(bounds), abs=1e-4)
    assert loss == pytest.approx(np.mean(true_losses), abs=1e-4)
    assert bound >= loss - 1e-6


@pytest.mark.parametrize(("code_length", "radius"), [(1, 0), (2, 1), (10, 4), (12, 4), (24, 8), (30, 11), (48, 17)])
def test_losses_are_those_of_the_authors_with_a_radius_of_35_percent(code_length, radius):
    expected = [slow_losses(code_length, radius, similar) for similar in (False, True)]
    np.testing.assert_allclose(MLH(code_length)._losses(), expected, rtol=1e-6)


def test_pairs_are_of_the_kinds_asked_for_and_visit_all_rows(labels):
    unequal = np.concatenate([labels[:30], np.full(10, 7), [-1]])
    similar = np.arange(41 * 1000).reshape(1000, 41) % 2 == 0
    rows = mlh._PairSampler(unequal).draw(similar, np.random.default_rng(0))
    np.testing.assert_array_equal(unequal[rows[..., 0]] == unequal[rows[..., 1]], similar)
    assert (np.bincount(rows[..., 0].ravel()) == 1000).all()
    of_last_class = rows[unequal[rows[..., 0]] == -1]
    assert set(of_last_class[:, 1]) == set(range(41))
    assert np.bincount(of_last_class[:, 1])[:40].max() < 30


@pytest.mark.parametrize("change", [{"similar_share": 0.0}, {"similar_share": 1.0}, {"batch_size": 1}], ids=str)
def test_rows_of_several_labels_are_drawn_in_pairs_of_one_kind_too(z, change):
    several = (np.arange(len(z))[:, None] + np.arange(2)) % 4 < 2
    assert MLH(4, **{**BRIEF, **change}).fit(z, several).transform(z).shape == (len(z), 4)


def test_bits_that_start_are_one_for_half_of_the_rows_and_leave_the_others_alone(z):
    generator = np.random.default_rng(0)
    ones = np.ones((21, 5), dtype=np.float32)
    weights = Weights(ones, ones.copy(), np.zeros(5, dtype=np.int64))
    starting = np.array([True, False, True, True, False])
    features = mlh._scaled(z)
    mlh._start(weights, starting, features, 0.1, generator)
    scaled = np.column_stack([(z - features.centre) / features.scale, np.ones(300)])
    np.testing.assert_allclose((scaled @ weights.values[:, starting] >= 0).mean(axis=0), 0.5, atol=0.01)
    assert weights.values[:-1, starting].std() == pytest.approx(0.1, rel=0.3)
    assert not weights.velocity[:, starting].any()
    assert (weights.values[:, ~starting] == 1).all()
    assert (weights.velocity[:, ~starting] == 1).all()


def test_the_bold_driver_brakes_after_the_worst_stages_and_speeds_up_after_the_best(z, labels, monkeypatch):
    course = [(5.0, 5.0), (9.0, 9.0), (4.0, 4.0), (4.5, 3.0), (6.0, 6.0), (3.0, 2.0), (1.0, 1.0)]
    steps = []

    def pretend(_features, _rows, _losses, step, _weights):
        steps.append(step)
        return course[len(steps) - 1]

    monkeypatch.setattr(mlh, "descend", pretend)
    hash_function = MLH(4, stages=7, batches_per_stage=1, learning_rate=1.0).fit(z, labels)
    np.testing.assert_allclose([step.learning_rate for step in steps], [1, 1, 1, 1.05, 1.05, 0.525, 0.55125])
    np.testing.assert_allclose([step.momentum for step in steps], [0.45, *[0.9] * 6])
    np.testing.assert_array_equal(hash_function.objective_, [bound for bound, _ in course])


def test_bits_that_are_nearly_constant_start_anew(z, labels, monkeypatch):
    deviations = []

    def pretend(_features, rows, _losses, _step, weights):
        assert not weights.ones.any()
        deviations.append(weights.values[:-1].std(axis=0))
        weights.values[:] = 5
        weights.ones[:] = np.array([0.01, 0.03, 0.97, 0.99]) * rows.size
        return 1.0, 1.0

    monkeypatch.setattr(mlh, "descend", pretend)
    MLH(4, stages=2, batches_per_stage=1).fit(z, labels)
    np.testing.assert_allclose(deviations, [[0.1] * 4, [0.01, 0, 0, 0.01]], rtol=0.5)


def test_the_stored_hyperplanes_give_the_bits_that_were_learned(z, labels, monkeypatch):
    learned = []

    def spy(*arguments):
        result = descend(*arguments)
        learned.append(arguments[-1].values)
        return result

    monkeypatch.setattr(mlh, "descend", spy)
    codes = MLH(12, **BRIEF).fit(z, labels).transform(z)
    centred = z - z.astype(np.float64).mean(axis=0)
    scaled = np.column_stack([centred / np.sqrt(np.mean(centred**2)), np.ones(300)])
    assert np.mean(codes == (scaled @ learned[-1] >= 0)) > 0.999
