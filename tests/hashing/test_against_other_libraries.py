"""Codes of faiss and scikit-learn beside ours, on equally prepared features. PCAH's are compared in `test_pcah`."""

from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.random_projection import GaussianRandomProjection

from deephash_pipeline.hashing import ITQ, LSH

needs_faiss = pytest.mark.skipif(
    find_spec("faiss") is None, reason="faiss is not installed: `make .venv/bench` installs it"
)


def test_lsh_takes_the_signs_of_scikit_learns_random_projections(z):
    # The same draws: scikit-learn's come from the legacy generator, so ours stand in for them.
    projection = GaussianRandomProjection(n_components=12, random_state=0).fit(z)
    projection.components_ = np.random.default_rng(3).standard_normal((12, z.shape[1])) / np.sqrt(12)
    np.testing.assert_array_equal(
        LSH(12, random_state=3).fit(z).transform(z), projection.transform(z.astype(np.float64)) >= 0
    )


@needs_faiss
def test_lsh_ranks_like_the_index_of_faiss(z):
    import faiss  # noqa: PLC0415 - not everywhere

    # Directions that are orthogonal, as faiss rotates the data; its index then ranks by Hamming distance.
    ours = LSH(16, random_state=5).fit(z)
    index = faiss.IndexLSH(z.shape[1], 16, True, False)
    rotation = np.ascontiguousarray(ours.arrays()["projection"].T, dtype=np.float32)
    faiss.copy_array_to_vector(rotation.ravel(), index.rrot.A)
    index.add(z)
    distances, rows = index.search(z[:20], len(z))
    codes = ours.transform(z)
    expected = (codes[:20, np.newaxis] != codes[np.newaxis]).sum(axis=2)
    np.testing.assert_array_equal(distances, np.take_along_axis(expected, rows, axis=1))


@needs_faiss
@pytest.mark.parametrize("seed", range(5))
def test_itq_loses_no_more_than_the_rotation_of_faiss(seed):
    import faiss  # noqa: PLC0415 - not everywhere

    # Decorrelated features: both methods have nothing to learn but the rotation, from as many iterations.
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(400, 6))
    features = np.linalg.qr(features - features.mean(axis=0))[0] * np.linspace(30, 20, 6)
    theirs = faiss.ITQMatrix(6)
    theirs.train(features.astype(np.float32))
    rotated = theirs.apply(features.astype(np.float32)).astype(np.float64)
    loss = ((np.where(rotated >= 0, 1.0, -1.0) - rotated) ** 2).sum()
    assert ITQ(6, iterations=theirs.max_iter, random_state=seed).fit(features).objective_[-1] < 1.02 * loss
