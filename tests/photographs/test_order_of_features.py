"""What a search with rescoring orders pictures by."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.hashing.srh import SRH
from deephash_pipeline.photographs import ImageIndex
from deephash_pipeline.photographs.ordering import best_order
from deephash_pipeline.photographs.stored import SHIPPED

DIGITS = load_digits()
IMAGES, LABELS = (DIGITS.images * 15).astype("uint8")[:900], DIGITS.target[:900]
QUERIES = 200
HASHER = ImageHasher.pretrained("digits-48")


def mean_average_precision(found):
    """Of ids of all items in order, (queries, items)."""
    relevant = LABELS[QUERIES:][found.astype(int)] == LABELS[:QUERIES, np.newaxis]
    precision = np.cumsum(relevant, axis=1) / np.arange(1, relevant.shape[1] + 1)
    return float(((precision * relevant).sum(axis=1) / relevant.sum(axis=1)).mean())


def ordered(distances):
    return np.argsort(distances, axis=1, kind="stable")


def with_encoder(encoder, benchmark):
    about = HASHER.description.model_copy(update={"benchmark": benchmark})
    hasher = ImageHasher.__new__(ImageHasher)
    hasher._parts = (HASHER.trunk, encoder, about)
    return hasher


UNLABELLED = ("lsh", "itq", "sh", "srh")


@pytest.mark.parametrize(
    ("name", "benchmark"),
    [*((name, "images") for name in (*UNLABELLED, "ksh", "itq_cca", "sdh", "supervised")), ("itq", SHIPPED)],
)
def test_the_order_is_no_worse_than_that_of_the_codes_and_better_than_that_of_distances(name, benchmark):
    # Features of length 1, the largest part of which all images share, as in those of photographs.
    z = IMAGES.reshape(len(IMAGES), -1) / 255 + 2 * np.cos(np.arange(64))
    z = (z / np.linalg.norm(z, axis=1, keepdims=True)).astype(np.float32)
    function = SRH(32, supervised=True) if name == "supervised" else HASH_FUNCTIONS[name](32)
    encoder = function.fit(z[QUERIES:], LABELS[QUERIES:])
    index, codes = HammingIndex(32, features=z.shape[1]), np.packbits(encoder.transform(z), axis=1)
    index.add(range(len(z) - QUERIES), codes[QUERIES:], features=z[QUERIES:])
    order = best_order(with_encoder(encoder, benchmark), index)
    queries, items = (
        part / np.linalg.norm(part, axis=1, keepdims=True) for part in map(order, (z[:QUERIES], z[QUERIES:]))
    )
    of_order = mean_average_precision(ordered(-queries @ items.T))
    of_codes = mean_average_precision(index.search(codes[:QUERIES], len(items)).ids)
    euclidean = mean_average_precision(ordered(((z[:QUERIES, None] - z[None, QUERIES:]) ** 2).sum(axis=2)))
    assert of_order >= of_codes - 0.001
    assert of_order > euclidean


def test_a_search_brings_codes_of_a_trained_hasher_into_no_worse_order():
    index = ImageIndex(HASHER, HammingIndex(48, features=HASHER.z_dimension))
    index.add(range(len(IMAGES) - QUERIES), IMAGES[QUERIES:])
    of_codes, rescored = (
        mean_average_precision(index.search(IMAGES[:QUERIES], 1000, rescore=rescore).ids) for rescore in (False, True)
    )
    assert rescored >= of_codes


def test_one_picture_and_none_are_searched_too():
    about = HASHER.description.model_copy(update={"benchmark": SHIPPED})
    hasher = ImageHasher(HASHER.trunk, HASHER.encoder, about)
    index = ImageIndex(hasher, HammingIndex(48, features=hasher.z_dimension))
    assert index.search(IMAGES[:2], 3, rescore=True).ids.shape == (2, 0)
    index.add(["only"], IMAGES[:1])
    assert index.search(IMAGES[:2], 3, rescore=True).ids.tolist() == [["only"], ["only"]]


def test_an_index_of_codes_alone_has_no_finer_order():
    with pytest.raises(InputError, match="keeps no features"):
        ImageIndex(HASHER, HammingIndex(48)).search(IMAGES[:1], 3, rescore=True)
