import math

import numpy as np
import pytest

from deephash_pipeline.hashing import SpectralHashing


def slow_transcription(z, queries, code_length):
    """Weiss' published steps: PCA, box, all single-dimension modes, sort by eigenvalue, sine with a phase of pi / 2."""
    variances, vectors = np.linalg.eigh(np.cov(z.T))
    directions = vectors[:, np.argsort(-variances)[: min(code_length, z.shape[1])]]
    directions = directions * [np.sign(column[np.abs(column).argmax()]) for column in directions.T]
    projected, projected_queries = z @ directions, queries @ directions
    epsilon = np.finfo(np.float64).eps
    least, greatest = projected.min(axis=0) - epsilon, projected.max(axis=0) + epsilon
    ranges = greatest - least
    eigenvalues = []
    for dimension, extent in enumerate(ranges):
        for mode in range(1, math.ceil((code_length + 1) * extent / ranges.max())):
            eigenvalues.append(((mode * math.pi / extent) ** 2, dimension, mode))
    codes = np.zeros((len(queries), code_length), dtype=np.bool_)
    for bit, (_, dimension, mode) in enumerate(sorted(eigenvalues)[:code_length]):
        omega = mode * math.pi / ranges[dimension]
        for row, values in enumerate(projected_queries):
            codes[row, bit] = math.sin(math.pi / 2 + omega * (values[dimension] - least[dimension])) > 0
    return codes


@pytest.mark.parametrize("code_length", [1, 8, 20, 48])
def test_codes_equal_those_of_a_slow_transcription(code_length, z):
    exact = z.astype(np.float64)
    queries = np.concatenate([exact[:100], 2 * exact[:20] - 5])
    codes = SpectralHashing(code_length).fit(exact).transform(queries)
    # Directions are stored in float32, so that a value within about 1e-7 of a wave's node may fall on its other side.
    assert np.mean(codes == slow_transcription(exact, queries, code_length)) > 0.9995


def test_adding_a_constant_feature_or_an_offset_changes_no_code(z):
    exact = np.round(z.astype(np.float64) * 256) / 256
    moved = np.concatenate([exact + 16.0, np.full((300, 2), 7.0)], axis=1)
    codes = SpectralHashing(24).fit(exact).transform(exact)
    assert np.mean(codes == SpectralHashing(24).fit(moved).transform(moved)) > 0.999
