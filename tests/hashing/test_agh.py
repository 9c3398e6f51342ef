"""AGH against the graph of all rows, made in full."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing import AGH
from deephash_pipeline.hashing.agh import anchor_weights, second_thresholds, smoothest_functions

ROWS = np.random.default_rng(3).normal(size=(150, 5))
ANCHORS = ROWS[:20].astype(np.float32)
BANDWIDTH = np.full(4, 1.5)
WEIGHTS = anchor_weights(ROWS, ANCHORS, BANDWIDTH)


def test_weights_are_gaussian_to_the_nearest_anchors_and_sum_to_one():
    for row, weights in zip(ROWS, WEIGHTS, strict=True):
        squared = ((row - ANCHORS) ** 2).sum(axis=1)
        kernels = np.where(squared <= np.sort(squared)[3], np.exp(-squared / 1.5**2), 0)
        np.testing.assert_allclose(weights, kernels / kernels.sum(), rtol=1e-5)


def test_a_row_far_from_all_anchors_has_weights():
    assert anchor_weights(ROWS[:1] + 1e6, ANCHORS, BANDWIDTH).sum() == pytest.approx(1)


def test_functions_are_eigenvectors_of_the_graph_after_the_constant_one():
    graph = WEIGHTS / WEIGHTS.sum(axis=0) @ WEIGHTS.T
    values, vectors = np.linalg.eigh(graph)
    assert values[-1] == pytest.approx(1)
    functions = WEIGHTS @ smoothest_functions(WEIGHTS, 6)
    np.testing.assert_allclose((functions**2).sum(axis=0), 150, rtol=1e-9)
    for k in range(6):
        overlap = abs(functions[:, k] @ vectors[:, -2 - k]) / np.sqrt(150)
        assert overlap == pytest.approx(1, abs=1e-9)


def test_second_thresholds_are_balanced_and_the_smoothest():
    laplacian = np.eye(150) - WEIGHTS / WEIGHTS.sum(axis=0) @ WEIGHTS.T
    y = WEIGHTS @ smoothest_functions(WEIGHTS, 1)[:, 0]

    def split(positive, negative):
        return np.where(y >= 0, y - positive, -y + negative)

    positive, negative = second_thresholds(y, WEIGHTS)
    best = split(positive, negative)
    assert best.sum() == pytest.approx(0, abs=1e-9)
    for moved in (negative - 0.1, negative + 0.1):
        balanced = (np.abs(y).sum() + moved * (y < 0).sum()) / (y >= 0).sum()
        other = split(balanced, moved)
        assert other.sum() == pytest.approx(0, abs=1e-9)
        assert other @ laplacian @ other > best @ laplacian @ best


def test_two_layers_split_each_half_again():
    fitted = AGH(7, anchors=20, random_state=2).fit(ROWS)
    codes = fitted.transform(ROWS)
    weights = anchor_weights(ROWS, fitted.anchors_, fitted.bandwidth_)
    functions = weights @ fitted.projection_
    assert functions.shape[1] == 4
    np.testing.assert_array_equal(codes[:, :4], functions >= 0)
    for bit in range(3):
        y = functions[:, bit]
        second = np.where(y >= 0, y >= fitted.positive_[bit], y <= fitted.negative_[bit])
        np.testing.assert_array_equal(codes[:, 4 + bit], second)


def test_more_bits_than_the_graph_has_functions_are_refused_with_the_remedy():
    with pytest.raises(InputError, match=r"^code_length is 60, but .* eigenvectors of 2 bits: raise anchors"):
        AGH(60, anchors=10).fit(ROWS)


def test_codes_of_binary_features_with_anchors_equally_far_are_those_of_any_batch():
    z = (load_digits().data >= 8).astype(float)
    method = AGH(16).fit(z[:600])
    alone = np.concatenate([method.transform(z[row : row + 1]) for row in range(600, 1200)])
    np.testing.assert_array_equal(method.transform(z)[600:1200], alone)
