import base64
import io
import re
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from deephash_pipeline.reports.gallery import CodedImages, nearest, retrieval_gallery, stratified_queries

CLASS_NAMES = ["circle", "square", "a name far too long to stand below a small picture"]


def sides(queries=12, database=40, channels=1, size=28):
    generator = np.random.default_rng(0)
    query_labels = np.arange(queries) % 3
    database_labels = np.arange(database) % 3
    return {
        "query_images": generator.integers(0, 200, (queries, channels, size, size), dtype=np.uint8),
        "query_labels": query_labels,
        "database_images": generator.integers(0, 200, (database, channels, size, size), dtype=np.uint8),
        "database_labels": database_labels,
        # One code per class, so that every neighbour within distance 0 is right.
        "query_codes": np.packbits(np.eye(12, dtype=bool)[query_labels], axis=1),
        "database_codes": np.packbits(np.eye(12, dtype=bool)[database_labels], axis=1),
        "class_names": CLASS_NAMES,
        "code_length": 12,
    }


def gallery_of(given_sides, queries=8, neighbours=10, seed=0):
    shown = (
        CodedImages(*(given_sides[f"{side}_{part}"] for part in ("images", "labels", "codes")))
        for side in ("query", "database")
    )
    with patch.multiple("deephash_pipeline.reports.gallery", GALLERY_ROWS=queries, GALLERY_COLUMNS=neighbours):
        return retrieval_gallery(*shown, given_sides["class_names"], given_sides["code_length"], seed)


class Tile(NamedTuple):
    """A picture of the gallery: how it is framed, its pixels, and what stands below."""

    frame: str
    pixels: np.ndarray
    text: list[str]


def tiles_of(gallery):
    tiles = []
    for frame, content in re.findall(r'<figure class="tile (\w+)">(.*?)</figure>', gallery, flags=re.DOTALL):
        data = re.search(r'src="data:image/png;base64,([^"]+)"', content).group(1)
        with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
            pixels = np.asarray(picture)
        tiles.append(Tile(frame, pixels, re.findall(r"<span[^>]*>(.*?)</span>", content)))
    return tiles


def frames(gallery):
    return [tile.frame for tile in tiles_of(gallery)]


def test_right_neighbours_stand_before_wrong_ones_that_are_further():
    given_sides = sides(queries=1, database=5)
    given_sides["database_labels"] = np.array([1, 0, 2, 0, 1])
    given_sides["database_codes"] = np.packbits(np.eye(12, dtype=bool)[given_sides["database_labels"]], axis=1)
    tiles = tiles_of(gallery_of(given_sides, neighbours=5))
    assert [tile.frame for tile in tiles] == ["query"] + ["right"] * 2 + ["wrong"] * 3
    assert tiles[0].text == ["query", "circle"]
    assert [tile.text[0] for tile in tiles[1:]] == ["d = 0"] * 2 + ["d = 2"] * 3


@pytest.mark.parametrize(("channels", "size"), [(1, 8), (1, 28), (3, 32)])
def test_small_images_are_stored_pixel_by_pixel_and_shown_as_squares(channels, size):
    given_sides = sides(queries=1, channels=channels, size=size)
    gallery = gallery_of(given_sides, neighbours=1)
    expected = given_sides["query_images"][0].transpose(1, 2, 0)
    np.testing.assert_array_equal(tiles_of(gallery)[0].pixels.reshape(expected.shape), expected)
    assert gallery.count('<img class="small"') == 2


def test_large_images_are_stored_as_large_as_they_are_shown():
    gallery = gallery_of(sides(channels=3, size=320), queries=2, neighbours=3)
    assert {tile.pixels.shape for tile in tiles_of(gallery)} == {(180, 180, 3)}
    assert '<img class="small"' not in gallery


def test_the_gallery_loads_nothing_and_is_ascii_whatever_the_class_names_are():
    names = ["Käse", "<b>bold</b>", "square"]
    gallery = gallery_of({**sides(), "class_names": names}, queries=3, neighbours=2)
    assert gallery.isascii()
    assert "K&#228;se" in gallery and "<b>" not in gallery
    assert all(source.startswith("data:") for source in re.findall(r'src="([^"]*)"', gallery))
    assert "url(" not in gallery and "@import" not in gallery


def test_the_same_seed_draws_the_same_gallery():
    first, again, other = (gallery_of(sides(), queries=3, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.replace("seed 1", "seed 2") != other


def test_only_the_drawn_images_are_read():
    read = []

    class Recorder(np.ndarray):
        def __getitem__(self, index):
            read.append(index)
            return np.asarray(super().__getitem__(index))

    given_sides = sides()
    given_sides["database_images"] = given_sides["database_images"].view(Recorder)
    gallery_of(given_sides, queries=2, neighbours=3)
    assert len(read) == 6


def test_more_rows_or_neighbours_than_there_are_images_are_left_out():
    gallery = gallery_of(sides(queries=2, database=3), queries=50, neighbours=50)
    assert frames(gallery).count("query") == 2
    assert len(frames(gallery)) == 2 * (1 + 3)


@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=30), count=st.integers(1, 12), seed=st.integers(0, 1000))
def test_no_class_is_drawn_twice_before_all_classes_are_drawn_once(labels, count, seed):
    labels = np.array(labels)
    drawn = stratified_queries(labels, count, np.random.default_rng(seed))
    assert len(drawn) == len(set(drawn.tolist())) == min(count, len(labels))
    sizes = np.bincount(labels, minlength=5)
    times = np.bincount(labels[drawn], minlength=5)
    for label in np.flatnonzero(times < sizes):
        assert times.max() <= times[label] + 1


@given(
    codes=st.lists(st.tuples(st.integers(0, 255), st.integers(0, 255)), min_size=2, max_size=20),
    count=st.integers(1, 20),
)
def test_neighbours_are_the_nearest_by_number_of_differing_bits(codes, count):
    packed = np.array(codes, dtype=np.uint8)
    query, database = packed[0], packed[1:]
    indices, distances = nearest(query, database, min(count, len(database)), np.random.default_rng(0))
    differing = np.array(
        [sum((int(a) ^ int(b)).bit_count() for a, b in zip(query, code, strict=True)) for code in database]
    )
    np.testing.assert_array_equal(distances, np.sort(differing)[: len(distances)])
    np.testing.assert_array_equal(differing[indices], distances)
    assert len(set(indices.tolist())) == len(indices)


def test_images_at_equal_distance_are_all_equally_likely_to_be_first():
    generator = np.random.default_rng(0)
    database = np.zeros((4, 2), dtype=np.uint8)
    first = [int(nearest(database[0], database, 1, generator)[0][0]) for _ in range(2000)]
    assert np.bincount(first, minlength=4).min() > 400
