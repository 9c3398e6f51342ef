"""Supervised deep hashing against its formula over pairs, and its gradient against differences."""

import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing.liong_sdh import LiongSDH, _classes, _flatten, _spread, _unflatten
from deephash_pipeline.hashing.pcah import PCAH
from tests.hashing.precision import mean_average_precision

SMALL = {"hidden_layers": (10, 8), "iterations": 30}


@pytest.fixture(scope="module")
def labels():
    return np.random.default_rng(3).integers(0, 4, 300)


def test_the_scatter_of_classes_is_that_over_all_pairs(labels):
    few = labels[:40]
    outputs = np.random.default_rng(0).uniform(-1, 1, (40, 5)).astype(np.float32)
    squares = np.square(outputs[:, None] - outputs[None], dtype=np.float64).sum(2)
    similar = few[:, None] == few
    expected = float(np.sum(outputs**2) / 40 + 0.7 * (squares[~similar].mean() - squares[similar].mean()))
    assert _spread(outputs, _classes(few), 0.7)[0] == pytest.approx(expected, rel=1e-5)


def test_the_gradient_is_that_of_the_objective(z, labels):
    generator = np.random.default_rng(1)
    method = LiongSDH(4, orthogonality_weight=0.3, decay=0.2, spread_weight=2.0)
    shapes = [(20, 6), (6, 5), (5, 4)]
    flat = generator.normal(size=sum((rows + 1) * columns for rows, columns in shapes)) / 4
    inputs, classes = (z - z.mean(axis=0)) / 3, _classes(labels)

    def value(at):
        return method._objective(_unflatten(at, shapes), inputs, classes)[0]

    gradient = _flatten(method._objective(_unflatten(flat, shapes), inputs, classes)[1])
    for direction in generator.normal(size=(5, len(flat))):
        # Wide steps: the network computes in float32.
        difference = (value(flat + 2e-3 * direction) - value(flat - 2e-3 * direction)) / 4e-3
        assert difference == pytest.approx(float(gradient @ direction), rel=0.02, abs=0.02)


def test_it_lowers_its_objective_and_separates_classes_better_than_their_principal_components():
    generator = np.random.default_rng(7)
    classes = np.arange(1500) % 10
    means = generator.normal(size=(10, 64))
    z = np.maximum(0.7 * means[classes] + generator.normal(size=(1500, 64)), 0.0).astype(np.float32)
    method = LiongSDH(12, iterations=50)
    found, of_components = (mean_average_precision(model, z, classes, 300) for model in (method, PCAH(12)))
    assert method.objective_[1] < method.objective_[0]
    assert found > of_components + 0.1


@pytest.mark.parametrize(("code_length", "sizes", "units"), [(9, SMALL, 8), (257, {}, 20)])
def test_a_code_longer_than_the_second_hidden_layer_is_refused(code_length, sizes, units, z, labels):
    with pytest.raises(InputError, match=f"second hidden layer has {units} units"):
        LiongSDH(code_length, **sizes).fit(z, labels)
