import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import ByFeatures, ByOutputs, HammingIndex
from deephash_pipeline.hamming.kernels.least import least, least_of_first
from deephash_pipeline.retrieval import pack_bits


@pytest.mark.parametrize("durable", [False, True])
def test_features_bring_items_of_one_code_into_order(tmp_path, durable):
    rng = np.random.default_rng(0)
    index = HammingIndex.create(tmp_path / "index", 4, features=3) if durable else HammingIndex(4, features=3)
    z = rng.normal(size=(5000, 3)).astype(np.float16)
    codes = np.full((5000, 1), 0b1010_0000, dtype=np.uint8)
    # One segment, and a tail.
    index.add(range(4900), codes[:4900], features=z[:4900])
    index.add(range(4900, 5000), codes[4900:], features=z[4900:])
    query = rng.normal(size=(2, 3)).astype(np.float32)
    by_features = ByFeatures(query, shortlist=5000)
    answers = index.search(codes[:2], 10, rerank=by_features)
    distances = ((z.astype(np.float32)[None] - query[:, None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(answers.ids, np.argsort(distances, axis=1, kind="stable")[:, :10])
    np.testing.assert_allclose(answers.scores, np.sort(distances, axis=1)[:, :10], rtol=1e-4)
    assert not answers.distances.any()
    if durable:
        index.close()
        index = HammingIndex.open(tmp_path / "index")
        np.testing.assert_array_equal(index.search(codes[:2], 10, rerank=by_features).ids, answers.ids)
    index.compact()
    np.testing.assert_array_equal(index.search(codes[:2], 10, rerank=by_features).ids, answers.ids)


def test_outputs_of_the_query_weigh_the_bits_that_differ():
    rng = np.random.default_rng(0)
    bits = rng.random((300, 70)) < 0.5
    u = rng.normal(size=(4, 70))
    index = HammingIndex(70)
    index.add([f"image {row}" for row in range(300)], pack_bits(bits))
    answers = index.search(pack_bits(u >= 0), 20, rerank=ByOutputs(u, shortlist=300))
    costs = (np.abs(u)[:, None] * (bits[None] != (u >= 0)[:, None])).sum(axis=2)
    order = np.argsort(costs, axis=1)[:, :20]
    assert answers.ids.tolist() == [[f"image {row}" for row in rows] for rows in order]
    np.testing.assert_allclose(answers.scores, np.sort(costs, axis=1)[:, :20], rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "factor", "message"),
    [
        *(("int8", 1e25, "a row that is longer than 1e[+]18"), ("int8", 1e-25, "or shorter by as much")),
        *(("float16", 1e5, "beyond 65,504"), ("float16", 1e-10, "whose numbers are 0 in 16 bits")),
    ],
)
def test_features_whose_distances_would_overflow_or_vanish_are_refused(kind, factor, message):
    features = np.random.default_rng(0).normal(size=(20, 4)) * factor
    features[3] = 0
    index = HammingIndex(8, features=4, feature_type=kind)
    with pytest.raises(InputError, match=message):
        index.add(range(20), np.zeros((20, 1), dtype=np.uint8), features=features)
    assert not len(index)


def test_numbers_of_another_shape_are_refused():
    index, code = HammingIndex(8, features=3), np.zeros((1, 1), dtype=np.uint8)
    for features, message in (
        (None, "features are missing"),
        (np.zeros((1, 2)), r"shape \(1, 2\)"),
        (np.full((1, 3), np.nan), "not finite"),
        (np.full((1, 3), 1e6), "beyond 65,504"),
    ):
        with pytest.raises(InputError, match=message):
            index.add([1], code, features=features)
    index.add([1], code, features=np.zeros((1, 3)))
    with pytest.raises(InputError, match=r"z is float64 of shape \(1, 4\)"):
        index.search(code, 1, rerank=ByFeatures(np.zeros((1, 4))))
    with pytest.raises(InputError, match=r"u is float64 of shape \(1, 7\)"):
        index.search(code, 1, rerank=ByOutputs(np.zeros((1, 7))))
    with pytest.raises(InputError, match="no features to re-rank by"):
        HammingIndex(8).search(code, 1, rerank=ByFeatures(np.zeros((1, 4))))


@pytest.mark.parametrize(("items", "k"), [(5, 5), (5, 9), (40, 1), (300, 5), (300, 299), (0, 3)])
def test_the_least_scores_come_in_the_order_of_a_stable_sort(items, k):
    scores = np.random.default_rng(0).integers(0, 20, (30, items)).astype(np.float32)
    scores[0, ::2] = np.inf
    scores[1] -= 10
    scores[2, ::2] *= -0.0
    np.testing.assert_array_equal(least(scores, k), np.argsort(scores, axis=1, kind="stable")[:, :k])
    firsts = [max(k, items // 3), max(k, items // 2), items + 7]
    for first, found in zip(firsts, least_of_first(scores, k, firsts), strict=True):
        np.testing.assert_array_equal(found, np.argsort(scores[:, :first], axis=1, kind="stable")[:, :k])
