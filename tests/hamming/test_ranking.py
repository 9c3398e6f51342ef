import itertools
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deephash_pipeline.hamming import ranking
from deephash_pipeline.hamming.codes import EVERY_ROW, Codes, bitmap_of, group_codes
from deephash_pipeline.hamming.ranking import nearest_rows, rows_within
from deephash_pipeline.retrieval.codes import code_words
from tests.hamming.brute_force import distances_between, nearest, random_codes

LENGTHS = st.one_of(st.integers(1, 64), st.integers(65, 512), st.integers(513, 4096))


@contextmanager
def threads(number):
    before = numba.get_num_threads()
    numba.set_num_threads(min(number, numba.config.NUMBA_NUM_THREADS))
    yield
    numba.set_num_threads(before)


def parts_of(rng, codes, borders, grouped, allowed):
    parts = []
    for start, stop in itertools.pairwise(borders):
        words = np.ascontiguousarray(code_words(codes[start:stop]).T)
        part = group_codes(words) if grouped else Codes(words, stop - start, stop - start)
        bitmap = EVERY_ROW if allowed is None else bitmap_of(allowed[start:stop])
        parts.append(replace(part, first_row=start, allowed=bitmap))
    return parts


@given(
    seed=st.integers(0, 2**32),
    code_length=LENGTHS,
    items=st.sampled_from([1, 2, 70, 400, 9000, 17_000]),
    different=st.sampled_from([1, 3, 200, 3000, None]),
    grouped=st.booleans(),
    share=st.sampled_from([None, 0.0, 0.01, 0.5, 0.99]),
    k=st.sampled_from([1, 2, 10, 300, 20_000]),
    engine=st.sampled_from(["auto", "scan", "sliced"]),
    number=st.sampled_from([1, 2]),
    copying=st.sampled_from([1, 32]),
    room=st.sampled_from([1, 600, 1 << 14]),
)
@settings(max_examples=60, deadline=None)
def test_the_nearest_rows_are_those_of_brute_force(
    seed, code_length, items, different, grouped, share, k, engine, number, copying, room
):
    rng = np.random.default_rng(seed)
    codes, queries = random_codes(rng, items, code_length, different), random_codes(rng, 5, code_length)
    queries[0] = codes[0]
    allowed = None if share is None else rng.random(items) < share
    borders = sorted({0, items, *rng.integers(0, items + 1, 2).tolist()})
    parts = parts_of(rng, codes, borders, grouped, allowed)
    distances = distances_between(queries, codes)
    rows = np.arange(items) if allowed is None else np.flatnonzero(allowed)

    with threads(number), patch.object(ranking, "COPYING_QUERIES", copying):
        found, found_distances = nearest_rows(code_words(queries), parts, code_length, k, engine)
    expected, expected_distances = nearest(distances, rows, k)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found_distances, expected_distances)

    radius = int(rng.integers(0, code_length + 1))
    with threads(number), patch.object(ranking, "FIRST_ROOM", room):
        starts, found, found_distances = rows_within(code_words(queries), parts, code_length, radius, engine)
    for query in range(len(queries)):
        expected, expected_distances = nearest(distances[query : query + 1], rows, items)
        inside = expected_distances[0] <= radius
        np.testing.assert_array_equal(found[starts[query] : starts[query + 1]], expected[0][inside])
        np.testing.assert_array_equal(found_distances[starts[query] : starts[query + 1]], expected_distances[0][inside])


@pytest.mark.parametrize("code_length", [24, 65, 257])
@pytest.mark.parametrize("engine", ["scan", "sliced"])
def test_a_list_that_is_full_again_and_again_loses_and_repeats_nothing(code_length, engine):
    rng = np.random.default_rng(code_length)
    codes, queries = random_codes(rng, 1500, code_length, 40), random_codes(rng, 300, code_length)
    distances = distances_between(queries, codes)
    parts = parts_of(rng, codes, [0, 700, 1500], grouped=False, allowed=None)
    radius = code_length // 2
    with threads(1), patch.object(ranking, "FIRST_ROOM", 1):
        starts, rows, found = rows_within(code_words(queries), parts, code_length, radius, engine)
    for query, (start, stop) in enumerate(itertools.pairwise(starts)):
        expected = np.flatnonzero(distances[query] <= radius)
        order = np.lexsort((expected, distances[query, expected]))
        np.testing.assert_array_equal(rows[start:stop], expected[order])
        np.testing.assert_array_equal(found[start:stop], distances[query, expected[order]])


@pytest.mark.parametrize("code_length", [12, 24, 25, 48, 49, 64, 65, 96, 257])
def test_the_bit_sliced_comparison_equals_the_scan_over_many_blocks(code_length):
    rng = np.random.default_rng(code_length)
    codes, queries = random_codes(rng, 50_000, code_length), random_codes(rng, 40, code_length)
    parts = parts_of(rng, codes, [0, 30_001, 50_000], True, None)
    for k in (1, 100, 5000):
        sliced = nearest_rows(code_words(queries), parts, code_length, k, "sliced")
        scanned = nearest_rows(code_words(queries), parts, code_length, k, "scan")
        np.testing.assert_array_equal(sliced[0], scanned[0])
        np.testing.assert_array_equal(sliced[1], scanned[1])


def test_more_keys_than_there_is_room_for_lose_no_answer():
    """Groups whose first item is not allowed tie without end, which is what fills the room for keys."""
    rng = np.random.default_rng(0)
    distinct = random_codes(rng, 20_000, 64)
    codes = np.concatenate([distinct, distinct[::-1]])
    allowed = np.arange(len(codes)) >= len(distinct)
    queries = random_codes(rng, 3, 64)
    parts = parts_of(rng, codes, [0, len(codes)], True, allowed)
    expected = nearest(distances_between(queries, codes), np.flatnonzero(allowed), 50)
    found = nearest_rows(code_words(queries), parts, 64, 50, "scan")
    np.testing.assert_array_equal(found[0], expected[0])
