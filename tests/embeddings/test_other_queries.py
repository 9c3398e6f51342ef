"""Queries of another kind than the vectors, as texts that search images: their recall is measured, or not promised."""

import logging

import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.embeddings import VectorIndex

WIDTH, ITEMS, QUERIES = 64, 3000, 100


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def kinds():
    """Vectors of common content, each kind in a cone of its own, as CLIP gives them."""
    random = np.random.default_rng(0)
    content, cones = random.normal(size=(24, WIDTH)), 8 * unit(random.normal(size=(2, WIDTH)))
    z = random.normal(size=(ITEMS + QUERIES, 24)) * np.linspace(1, 0.2, 24)
    images, texts = (
        unit(0.3 * z @ content + 0.3 * random.normal(size=(len(z), WIDTH)) + cone).astype(np.float32) for cone in cones
    )
    return images[:ITEMS], images[ITEMS:], texts[ITEMS:]


def recall(index, queries, images):
    exact = np.argsort(-(queries @ images.T), axis=1)[:, :10]
    found = index.search(queries, 10).ids.tolist()
    return np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, exact.tolist(), strict=True)])


def warned(caplog):
    return [record for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_search_notices_queries_of_another_kind_once_and_compares_more(kinds, tmp_path, caplog):
    images, same, texts = kinds
    with (
        VectorIndex.build(tmp_path / "x.index", images, code_length=48, recall=0.8) as index,
        caplog.at_level("WARNING"),
    ):
        like_them = recall(index, same, images)
        index.search(images[:1], 3)
        assert not warned(caplog) and not index.has_warned
        assert recall(index, texts, images) > max(0.95, like_them - 0.01)
        index.search(texts[:1], 3)
        assert len(warned(caplog)) == 1
        assert "build with --queries FILE" in caplog.text


def test_recall_that_was_measured_with_queries_is_that_of_such(kinds, tmp_path, caplog):
    images, _, texts = kinds
    np.save(tmp_path / "texts.npy", texts)
    build = {"code_length": 48, "recall": 0.8}
    with VectorIndex.build(tmp_path / "x.index", images, queries=tmp_path / "texts.npy", **build) as index:
        expected = index.expected(10)
        assert expected.recall == pytest.approx(recall(index, texts, images), abs=0.02)
        assert index.description.measured.given and index.description.measured.queries == QUERIES
    assert not warned(caplog)
    for queries in (texts[:, :5], texts[:20]):
        with pytest.raises(InputError, match=r"queries of .* numbers: give 50 at least, of 64 numbers"):
            VectorIndex.build(tmp_path / "y.index", images, queries=np.ascontiguousarray(queries), **build)
    assert not (tmp_path / "y.index").exists()
