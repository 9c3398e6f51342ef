"""SRH against a dense transcription of its formulas, and ITQ where rows are few."""

import numpy as np
from scipy.linalg import eigh

from deephash_pipeline.hashing import ITQ, SRH
from deephash_pipeline.hashing.principal_directions import scatter as scatter_of
from deephash_pipeline.hashing.srh import neighbour_graph, spectral_regression, unit_length_rows

ROWS = unit_length_rows(np.random.default_rng(3).normal(size=(60, 6)))


def test_graph_and_its_regression_are_those_of_the_formulas() -> None:
    cosines = ROWS.astype(np.float64) @ ROWS.T
    classes = np.append(np.full(40, -1), np.arange(20) % 3)
    graph = np.zeros_like(cosines)
    for row, to_others in enumerate(cosines):
        nearest = [other for other in np.argsort(-to_others) if other != row][:5]
        graph[row, nearest] = np.maximum(to_others[nearest], 0) ** 3
    known = (classes[:, None] >= 0) & (classes >= 0)
    same = known & (classes[:, None] == classes)
    graph[known & ~same] = 0
    graph = (graph + graph.T) / 2
    graph += graph.sum(axis=1).mean() * same / np.maximum(same.sum(axis=1), 1)
    graph /= np.sqrt(np.outer(graph.sum(axis=1), graph.sum(axis=1)))
    found = neighbour_graph(ROWS, 5, classes)
    np.testing.assert_allclose((found.neighbours + found.members @ found.members.T).toarray(), graph, atol=1e-6)

    smooth, scatter = ROWS.T.astype(np.float64) @ graph @ ROWS, scatter_of(ROWS, np.zeros(ROWS.shape[1]))
    np.testing.assert_allclose(found.smoothness(ROWS), smooth, atol=1e-5)
    np.testing.assert_allclose(scatter, ROWS.T.astype(np.float64) @ ROWS, atol=1e-5)
    values, vectors = spectral_regression(smooth, scatter, 0.3)
    metric = scatter + 0.3 * np.trace(scatter) / 6 * np.eye(6)
    np.testing.assert_allclose(vectors.T @ metric @ vectors, np.eye(6), atol=1e-5)
    by_value = vectors.T @ smooth @ vectors
    np.testing.assert_allclose(np.maximum(np.diag(by_value), 0), values, atol=1e-5)
    np.testing.assert_allclose(by_value, np.diag(np.diag(by_value)), atol=1e-5)


def test_few_rows_give_the_codes_of_itq() -> None:
    rows = np.random.default_rng(4).normal(size=(200, 20))
    np.testing.assert_array_equal(SRH(12).fit(rows).transform(rows), ITQ(12).fit(rows).transform(rows))


def test_class_minus_one_alone_is_of_rows_without_one() -> None:
    _, classes = SRH(2, supervised=True)._validated_training_set(ROWS, np.arange(60) % 4 - 2)
    np.testing.assert_array_equal(classes[:4], [0, -1, 1, 2])


KINDS = np.arange(2000) % 20


def noisy_clusters(noise: float) -> np.ndarray:
    generator = np.random.default_rng(5)
    return 3 * generator.normal(size=(20, 40))[KINDS] + noise * generator.normal(size=(2000, 40))


def agreement(codes: np.ndarray, kinds: np.ndarray) -> float:
    signs = np.where(codes, 1.0, -1.0)
    nearest = np.argsort(-(signs @ signs.T), axis=1, kind="stable")[:, :50]
    return float((kinds[nearest] == kinds[:, None]).mean())


def test_classes_that_are_known_help_and_rows_without_one_count_too() -> None:
    rows = noisy_clusters(7)
    known = KINDS < 10
    without, with_classes = (
        SRH(16, supervised=labels is not None).fit(rows, labels).transform(rows)
        for labels in (None, np.where(known, KINDS, -1))
    )
    assert agreement(with_classes[known], KINDS[known]) > agreement(without[known], KINDS[known]) + 0.02
    plain = agreement(ITQ(16).fit(rows).transform(rows)[~known], KINDS[~known])
    assert agreement(with_classes[~known], KINDS[~known]) > plain


def test_distances_after_steps_along_the_graph_are_added_by_their_weight() -> None:
    graph = neighbour_graph(ROWS, 5, np.full(len(ROWS), -1))
    smooth, scatter = graph.smoothness(ROWS), scatter_of(ROWS, np.zeros(6))
    without, added = (SRH(4, diffusion=weight)._metric(smooth, scatter, len(ROWS)) for weight in (0, 0.3))
    ridge = 1000 / len(ROWS) * np.trace(scatter) / 6
    values, vectors = eigh(smooth, scatter + ridge * np.eye(6))
    walked = ROWS @ vectors @ np.diag(np.maximum(values, 0) ** 8)
    between = np.square(walked[:, np.newaxis] - walked).sum(axis=2)
    found = np.einsum("ijd,de,ije->ij", difference := ROWS[:, np.newaxis] - ROWS, added - without, difference)
    np.testing.assert_allclose(found, 0.3 * between / np.square(walked).sum(), atol=1e-6)


def test_classes_of_a_kind_come_nearer_to_each_other() -> None:
    generator = np.random.default_rng(6)
    kinds, classes = np.arange(2400) % 4, np.arange(2400) % 24
    rows = 2 * generator.normal(size=(4, 60))[kinds] + 2 * generator.normal(size=(24, 60))[classes]
    rows += 3 * generator.normal(size=rows.shape)

    def share(weight: float) -> float:
        signs = np.where(SRH(32, diffusion=weight).fit(rows).transform(rows), 1.0, -1.0)
        nearest = np.argsort(-(signs @ signs.T), axis=1, kind="stable")[:, :600]
        return float((kinds[nearest] == kinds[:, None]).mean())

    assert share(0.5) > share(0) + 0.05
