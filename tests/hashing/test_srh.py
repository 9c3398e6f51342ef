"""SRH against a dense transcription of its formulas, and ITQ where rows are few."""

import numpy as np

from deephash_pipeline.hashing import ITQ, SRH
from deephash_pipeline.hashing.srh import neighbour_graph, spectral_regression, unit_rows

ROWS = unit_rows(np.random.default_rng(3).normal(size=(60, 6)))


def test_graph_and_its_regression_are_those_of_the_formulas() -> None:
    cosines = ROWS.astype(np.float64) @ ROWS.T
    graph = np.zeros_like(cosines)
    for row, to_others in enumerate(cosines):
        nearest = [other for other in np.argsort(-to_others) if other != row][:5]
        graph[row, nearest] = np.maximum(to_others[nearest], 0) ** 3
    graph = (graph + graph.T) / 2
    graph /= np.sqrt(np.outer(graph.sum(axis=1), graph.sum(axis=1)))
    found = neighbour_graph(ROWS, 5)
    np.testing.assert_allclose(found.toarray(), graph, atol=1e-6)

    values, vectors = spectral_regression(ROWS, found, 0.3)
    scatter = ROWS.T.astype(np.float64) @ ROWS
    metric = scatter + 0.3 * np.trace(scatter) / 6 * np.eye(6)
    np.testing.assert_allclose(vectors.T @ metric @ vectors, np.eye(6), atol=1e-5)
    by_value = vectors.T @ ROWS.T @ graph @ ROWS @ vectors
    np.testing.assert_allclose(np.maximum(np.diag(by_value), 0), values, atol=1e-5)
    np.testing.assert_allclose(by_value, np.diag(np.diag(by_value)), atol=1e-5)


def test_few_rows_give_the_codes_of_itq() -> None:
    rows = np.random.default_rng(4).normal(size=(200, 20))
    np.testing.assert_array_equal(SRH(12).fit(rows).transform(rows), ITQ(12).fit(rows).transform(rows))


def test_neighbours_of_noisy_clusters_get_near_codes() -> None:
    generator = np.random.default_rng(5)
    kinds = np.arange(2000) % 20
    rows = 3 * generator.normal(size=(20, 40))[kinds] + 4.5 * generator.normal(size=(2000, 40))

    def agreement(codes: np.ndarray) -> float:
        signs = np.where(codes, 1.0, -1.0)
        nearest = np.argsort(-(signs @ signs.T), axis=1, kind="stable")[:, :50]
        return float((kinds[nearest] == kinds[:, None]).mean())

    plain, ours = (agreement(method(16).fit(rows).transform(rows)) for method in (ITQ, SRH))
    assert ours > plain + 0.02
