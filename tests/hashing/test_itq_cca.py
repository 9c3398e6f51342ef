"""ITQ-CCA against the eigenproblem of canonical correlations, written out."""

import numpy as np
from scipy.linalg import eig

from deephash_pipeline.hashing import ITQCCA
from deephash_pipeline.hashing.anchors import class_columns
from deephash_pipeline.hashing.linear import feature_mean
from tests.hashing.precision import mean_average_precision

LABELS = np.arange(600) % 4
Z = np.random.default_rng(5).normal(size=(600, 9)) + 1.5 * np.random.default_rng(6).normal(size=(4, 9))[LABELS]


def test_directions_solve_the_eigenproblem_and_are_as_long_as_their_correlations():
    classes, n = class_columns(LABELS), len(Z)
    x, y = Z - Z.mean(axis=0), classes - classes.mean(axis=0)
    xx, yy = x.T @ x + 1e-4 * n * np.eye(9), y.T @ y + 1e-4 * n * np.eye(4)
    values, vectors = eig(x.T @ y @ np.linalg.solve(yy, y.T @ x), xx)
    order = np.argsort(-values.real)[:3]
    directions = ITQCCA(6)._learn_directions(Z, feature_mean(Z), LABELS)
    for column, at in enumerate(order):
        expected = vectors[:, at].real
        expected *= np.sqrt(n * values[at].real / (expected @ xx @ expected))
        expected *= np.sign(expected[np.abs(expected).argmax()])
        np.testing.assert_allclose(directions[:, column], expected, rtol=1e-8, atol=1e-8)
    # The fourth class is where the other three are not, and there are no more than four columns.
    assert np.abs(directions[:, 3]).max() < 1e-3 * np.abs(directions[:, 0]).max()
    assert not directions[:, 4:].any()


def test_precision_rises_with_more_bits_than_classes():
    generator = np.random.default_rng(7)
    labels = np.arange(1500) % 10
    z = generator.normal(size=(10, 30))[labels] + 1.2 * generator.normal(size=(1500, 30))
    precisions = [mean_average_precision(ITQCCA(code_length), z, labels, 300) for code_length in (4, 12, 48)]
    assert precisions[0] < precisions[1] < precisions[2]
