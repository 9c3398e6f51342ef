import numpy as np
import pytest

from deephash_pipeline.hamming import ByFeatures, HammingIndex
from deephash_pipeline.hamming.features import FeatureForm
from deephash_pipeline.hamming.kernels.rotating import ROUNDS, _plan, rotated

WIDTHS = [1, 2, 3, 7, 8, 48, 96, 255, 384]


def hadamard(size):
    """Sylvester's construction."""
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def rotation(width):
    """The same as one product of matrices: rows are multiplied from the right."""
    whole, (signs, size), half = np.eye(width), _plan(width), width // 2
    pairs = np.eye(width)
    pairs[:half, :half] = pairs[:half, half : 2 * half] = pairs[half : 2 * half, :half] = np.eye(half) / np.sqrt(2)
    pairs[half : 2 * half, half : 2 * half] = -np.eye(half) / np.sqrt(2)
    for number in range(ROUNDS):
        mixing, first = np.eye(width), (width - size) * (number % 2)
        mixing[first : first + size, first : first + size] = hadamard(size)
        whole = whole @ np.diag(signs[number].astype(np.float64)) @ mixing @ pairs
    return whole


@pytest.mark.parametrize("width", WIDTHS)
def test_rotating_is_a_product_with_a_rotation_and_is_undone(width):
    matrix, rows = rotation(width), np.random.default_rng(0).normal(size=(20, width)).astype(np.float32)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(width), atol=1e-6)
    before = rows.copy()
    np.testing.assert_allclose(rotated(rows), rows @ matrix, atol=1e-5)
    np.testing.assert_allclose(rotated(rotated(rows), back=True), rows, atol=1e-5)
    np.testing.assert_array_equal(rows, before)


def test_numbers_of_all_sizes_become_alike():
    spectrum = ((1 + np.arange(384) / 8) ** -0.55).astype(np.float32)
    rows = np.random.default_rng(0).normal(size=(500, 384)).astype(np.float32) * spectrum

    def largest(vectors):
        return (np.abs(vectors).max(axis=1) / np.sqrt((vectors**2).mean(axis=1))).mean()

    assert largest(rows) > 5.5
    assert largest(rotated(rows)) < 3.4


def test_turned_vectors_lose_half_as_much_in_int8():
    spectrum = ((1 + np.arange(384) / 8) ** -0.55).astype(np.float32)
    rows = np.random.default_rng(0).normal(size=(500, 384)).astype(np.float32) * spectrum
    lost = []
    for is_rotated in (False, True):
        form = FeatureForm(384, "int8", is_rotated)
        lost.append(np.linalg.norm(form.real(form.stored(rows)) - rows))
    assert lost[1] < 0.6 * lost[0]


@pytest.mark.parametrize("durable", [False, True])
def test_an_index_of_int8_gives_back_and_orders_what_it_was_given(tmp_path, durable):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(5000, 48)).astype(np.float32) * np.linspace(1, 20, 48, dtype=np.float32)
    codes = np.zeros((5000, 1), dtype=np.uint8)
    form = (8, 48, "int8")
    index = HammingIndex.create(tmp_path / "index", *form) if durable else HammingIndex(*form)
    # One segment, and a tail.
    index.add(range(4900), codes[:4900], features=z[:4900])
    index.add(range(4900, 5000), codes[4900:], features=z[4900:])

    def check():
        kept = index.features_of(range(5000))
        np.testing.assert_allclose(kept, z, atol=0.02 * np.abs(z).max())
        query = rng.normal(size=(3, 48)).astype(np.float32) * 10
        answers = index.search(codes[:3], 10, rerank=ByFeatures(query, shortlist=5000))
        distances = ((kept[None] - query[:, None]) ** 2).sum(axis=2)
        np.testing.assert_allclose(answers.scores, np.sort(distances, axis=1)[:, :10], rtol=1e-4)
        np.testing.assert_allclose(answers.scores, np.take_along_axis(distances, answers.ids, axis=1), rtol=1e-4)

    check()
    if durable:
        index.close()
        index = HammingIndex.open(tmp_path / "index")
        check()
    index.compact()
    check()
