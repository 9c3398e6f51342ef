"""SDH and FSDH against their objectives, written out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.hashing import FSDH, SDH
from deephash_pipeline.hashing.anchors import (
    KernelRegression,
    class_columns,
    draw_anchors,
    random_signs,
    signs_of_projections,
)
from deephash_pipeline.hashing.sdh import solve_bits

LABELS = np.arange(300) % 5
Z = (np.random.default_rng(1).normal(size=(300, 6)) + 3 * np.eye(5, 6)[LABELS]).astype(np.float32)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), code_length=st.integers(1, 7), nu=st.sampled_from([0.0, 1e-5, 0.5, 10.0]))
def test_no_single_bit_of_sdh_could_be_better(seed, code_length, nu):
    generator = np.random.default_rng(seed)
    classes = class_columns(generator.permutation(np.arange(20) % 3))
    classifier, fitted = generator.normal(size=(code_length, 3)), generator.normal(size=(20, code_length))

    def cost(codes):
        return ((classes - codes @ classifier) ** 2).sum(axis=1) + nu * ((codes - fitted) ** 2).sum(axis=1)

    start = random_signs((20, code_length), generator)
    codes = solve_bits(start, classes @ classifier.T + nu * fitted, classifier)
    assert (cost(codes) <= cost(start) + 1e-9).all()
    for bit in range(code_length):
        flipped = codes.copy()
        flipped[:, bit] *= -1
        assert (cost(codes) <= cost(flipped) + 1e-9).all()


def test_a_kernel_regression_solves_the_normal_equations():
    anchors = draw_anchors(Z, 12, np.random.default_rng(0))
    regression, codes = KernelRegression(Z, anchors), random_signs((300, 4), np.random.default_rng(1))
    distances = ((Z[:, np.newaxis].astype(np.float64) - anchors.rows) ** 2).sum(axis=2)
    kernels = np.exp(-distances / (2 * distances.mean()))
    kernels -= kernels.mean(axis=0)
    np.testing.assert_allclose(regression.kernels, kernels, atol=1e-10)
    np.testing.assert_allclose(regression.solve(codes), np.linalg.lstsq(kernels, codes)[0], rtol=1e-3, atol=1e-3)


def test_fsdh_regresses_labels_onto_codes():
    classes, codes = class_columns(LABELS), random_signs((300, 4), np.random.default_rng(1))
    expected = np.linalg.solve(classes.T @ classes + 0.7 * np.eye(5), classes.T @ codes)
    np.testing.assert_allclose(FSDH(4, regression_decay=0.7)._regress(classes, codes), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_fsdh_gives_each_class_a_code_of_its_own_where_there_are_as_many(seed):
    hash_function, classes = FSDH(3), class_columns(LABELS)
    start = hash_function._start(classes, np.random.default_rng(seed))
    assert len(np.unique(signs_of_projections(hash_function._regress(classes, start)), axis=0)) == 5


@pytest.mark.parametrize("method", [SDH, FSDH])
def test_a_large_weight_of_the_fit_keeps_codes_near_what_the_kernels_can_say(method):
    def misfit(weight):
        fitted = method(8, anchors=20, fit_weight=weight).fit(Z, LABELS)
        kernels = draw_anchors(Z, 20, np.random.default_rng(0)).kernels(Z)
        projected = kernels @ fitted.projection_
        return float(((np.where(projected >= 0, 1, -1) - projected) ** 2).mean())

    assert misfit(1e3) < misfit(1e-5)
