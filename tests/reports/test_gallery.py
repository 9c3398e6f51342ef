import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deephash_pipeline.errors import InputError
from deephash_pipeline.reports.gallery import (
    RIGHT_FRAME,
    WRONG_FRAME,
    nearest,
    retrieval_gallery,
    stratified_queries,
)

CLASS_NAMES = ["circle", "square", "a name far too long to stand below a small picture"]


def sides(queries: int = 12, database: int = 40, channels: int = 1, size: int = 28):
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


def frame_colours(image):
    """Colours of the neighbours' frames in the only row of a gallery, from left to right."""
    pixels = np.asarray(image)
    is_frame = (pixels == RIGHT_FRAME).all(axis=2) | (pixels == WRONG_FRAME).all(axis=2)
    # On a horizontal edge of the frames the whole width of each tile has the frame's colour.
    edge = int(np.argmax(is_frame.sum(axis=1)))
    line = pixels[edge]
    starts = np.flatnonzero(is_frame[edge] & ~np.roll(is_frame[edge], 1))
    return [tuple(int(value) for value in line[start]) for start in starts]


def test_neighbours_of_the_querys_class_are_framed_green():
    image = retrieval_gallery(**sides(), queries=1, neighbours=4)
    assert frame_colours(image) == [RIGHT_FRAME] * 4


def test_neighbours_of_another_class_are_framed_red():
    given_sides = sides()
    given_sides["database_labels"] = (given_sides["database_labels"] + 1) % 3
    image = retrieval_gallery(**given_sides, queries=1, neighbours=4)
    assert frame_colours(image) == [WRONG_FRAME] * 4


def test_right_neighbours_stand_before_wrong_ones_that_are_further():
    given_sides = sides(queries=1, database=5)
    given_sides["database_labels"] = np.array([1, 0, 2, 0, 1])
    given_sides["database_codes"] = np.packbits(np.eye(12, dtype=bool)[given_sides["database_labels"]], axis=1)
    image = retrieval_gallery(**given_sides, neighbours=5)
    assert frame_colours(image) == [RIGHT_FRAME] * 2 + [WRONG_FRAME] * 3


def test_small_images_are_enlarged_without_smoothing():
    given_sides = sides(queries=1, size=28)
    checkerboard = (np.indices((28, 28)).sum(axis=0) % 2 * 255).astype(np.uint8)
    given_sides["query_images"][0, 0] = checkerboard
    pixels = np.asarray(retrieval_gallery(**given_sides, neighbours=1))
    enlarged = np.repeat(np.kron(checkerboard, np.ones((4, 4), dtype=np.uint8))[:, :, None], 3, axis=2)
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (112, 112, 3))[:, :60, 0]
    assert any(
        np.array_equal(window, enlarged) for row in windows for window in row if (window[0] == enlarged[0]).all()
    )


@pytest.mark.parametrize(("channels", "size"), [(3, 32), (1, 8), (3, 227)])
def test_grey_and_colour_images_of_any_size_fit_their_tiles(channels, size):
    shape = retrieval_gallery(**sides(channels=channels, size=size), queries=3, neighbours=4).size
    assert shape == retrieval_gallery(**sides(), queries=3, neighbours=4).size


def test_the_same_seed_draws_the_same_gallery():
    first, again, other = (retrieval_gallery(**sides(), queries=3, seed=seed) for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()


def test_only_the_drawn_images_are_read():
    read = []

    class Recorder(np.ndarray):
        def __getitem__(self, index):
            read.append(index)
            return np.asarray(super().__getitem__(index))

    given_sides = sides()
    given_sides["database_images"] = given_sides["database_images"].view(Recorder)
    retrieval_gallery(**given_sides, queries=2, neighbours=3)
    assert len(read) == 6


def test_more_rows_or_neighbours_than_there_are_images_are_left_out():
    full = retrieval_gallery(**sides(queries=2, database=3), queries=2, neighbours=3)
    assert retrieval_gallery(**sides(queries=2, database=3), queries=50, neighbours=50).size == full.size


@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=30),
    count=st.integers(1, 12),
    seed=st.integers(0, 1000),
)
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
    found = nearest(query, database, min(count, len(database)), np.random.default_rng(0))
    differing = np.array(
        [sum((int(a) ^ int(b)).bit_count() for a, b in zip(query, code, strict=True)) for code in database]
    )
    np.testing.assert_array_equal(found.distances, np.sort(differing)[: len(found.distances)])
    np.testing.assert_array_equal(differing[found.indices], found.distances)
    assert len(set(found.indices.tolist())) == len(found.indices)


def test_images_at_equal_distance_are_all_equally_likely_to_be_first():
    generator = np.random.default_rng(0)
    database = np.zeros((4, 2), dtype=np.uint8)
    first = [int(nearest(database[0], database, 1, generator).indices[0]) for _ in range(2000)]
    assert np.bincount(first, minlength=4).min() > 400


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query_images": np.zeros((12, 28, 28), dtype=np.uint8)}, "query_images have shape"),
        ({"database_labels": np.zeros(3, dtype=np.int64)}, "database has 40 images, 3 labels and 40 codes"),
        ({"query_labels": np.full(12, 3)}, "name all classes in class_names"),
        ({"code_length": 24}, "query_codes have shape .* 3 bytes for 24 bits"),
        ({"neighbours": 0}, "ask for at least 1 of each"),
    ],
)
def test_sides_that_disagree_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        retrieval_gallery(**{**sides(), **change})
