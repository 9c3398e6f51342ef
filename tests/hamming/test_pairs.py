import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import HammingIndex, pairs
from deephash_pipeline.retrieval.codes import code_words
from tests.hamming.brute_force import distances_between, random_codes


def clustered(rng, count, code_length):
    """Packed codes around few centres: some equal, some near, some far."""
    centres = rng.random((max(1, count // 10), code_length)) < 0.5
    flips = rng.random((count, code_length)) < rng.choice([0, 0.01, 0.1], size=(count, 1))
    return np.packbits(centres[rng.integers(0, len(centres), count)] ^ flips, axis=1)


def expected(codes, radius, split=0):
    distances = distances_between(codes, codes)
    rows = np.arange(len(codes))
    wanted = (rows[:, None] < split) & (rows >= split) if split else rows[:, None] < rows
    first, second = np.nonzero(wanted & (distances <= radius))
    return np.stack([first, second, distances[first, second]], axis=1).tolist()


def found(codes, code_length, radius, split=0):
    blocks = pairs.near_rows(code_words(codes), code_length, radius, split)
    return [pair for block in blocks for pair in block.tolist()]


@given(
    seed=st.integers(0, 2**32),
    code_length=st.sampled_from([1, 7, 64, 65, 128, 255, 300, 1000, 4095, 4096]),
    count=st.integers(1, 120),
    radius=st.integers(0, 20),
    equal=st.integers(0, 3),
    at_once=st.sampled_from([64, 1000, 1 << 20]),
    split=st.booleans(),
)
@example(seed=0, code_length=64, count=250, radius=64, equal=0, at_once=64, split=False)
@settings(max_examples=30, deadline=None)
def test_pairs_are_those_of_brute_force_in_its_order(seed, code_length, count, radius, equal, at_once, split):
    rng = np.random.default_rng(seed)
    codes = clustered(rng, count, code_length)
    border = int(rng.integers(1, count + 1)) if split else 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs, "PAIRS_AT_ONCE", at_once)
        patch.setattr(pairs, "LEAST_ROOM", 64)
        patch.setattr(pairs, "PAIRS_IN_BLOCK", 100)
        if radius + equal <= code_length:
            # However many parts are chosen by their costs, any number of them is right.
            cut = max(1, radius + equal if equal else 1)
            tables = pairs._Tables(pairs._masks(code_length, cut), equal)
            patch.setattr(pairs, "_cheapest", lambda *_: tables)
        assert found(codes, code_length, radius, border) == expected(codes, radius, border)


@pytest.mark.parametrize("radius", [3, 60])
def test_a_radius_for_which_tables_gain_nothing_is_scanned(radius):
    codes = random_codes(np.random.default_rng(0), 20_000, 128)
    tables = pairs._cheapest(code_words(codes), 128, radius)
    assert (tables.equal == 0) == (radius == 60)
    assert found(codes[:600], 128, radius) == expected(codes[:600], radius)


def test_items_that_are_not_removed_are_paired_in_the_order_of_their_addition(tmp_path):
    rng = np.random.default_rng(0)
    codes = clustered(rng, 200, 48)
    index = HammingIndex.create(tmp_path / "index", 48)
    index.add([f"a{row}" for row in range(150)], codes[:150])
    index.compact()
    index.add([f"a{row}" for row in range(150, 200)], codes[150:])
    index.remove([f"a{row}" for row in range(0, 200, 7)])
    kept = [row for row in range(200) if row % 7]
    wanted = [(f"a{kept[i]}", f"a{kept[j]}", d) for i, j, d in expected(codes[kept], 5)]
    assert [pair for block in index.pairs(5) for pair in block] == wanted
    other = HammingIndex(48)
    assert list(index.pairs(5, against=other)) == []
    other.add(range(100), codes[:100])
    both = np.concatenate([codes[kept], codes[:100]])
    against = [pair for block in index.pairs(5, against=other) for pair in block]
    assert against == [(f"a{kept[i]}", j - len(kept), d) for i, j, d in expected(both, 5, len(kept))]
    assert sum(len(block) for block in index.pairs(5)) == len(wanted)


def test_an_iterator_answers_for_the_moment_it_was_made():
    index = HammingIndex(8)
    index.add([1, 2], np.zeros((2, 1), dtype=np.uint8))
    blocks = index.pairs(0)
    index.remove([1])
    assert [list(block) for block in blocks] == [[(1, 2, 0)]]
    assert list(index.pairs(0)) == []


def test_groups_are_what_chains_of_pairs_connect(monkeypatch):
    monkeypatch.setattr(pairs, "PAIRS_IN_BLOCK", 1)
    index = HammingIndex(16)
    chain = [0b0, 0b1, 0b11, 0b111, 0xFF00, 0xFFF0, 0xFFF1]
    index.add([7, 6, 5, 4, 3, 2, 1], np.array(chain, dtype=">u2").view(np.uint8).reshape(-1, 2))
    assert index.groups(1) == [[7, 6, 5, 4], [2, 1]]
    assert HammingIndex(16).groups(1) == []


def test_groups_without_scipy_name_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(InputError, match=r"groups of pairs need SciPy .*pip install scipy"):
        HammingIndex(16).groups(1)


def test_bad_arguments_are_refused_before_the_first_block():
    index = HammingIndex(16)
    with pytest.raises(InputError, match="radius is -1"):
        index.pairs(-1)
    with pytest.raises(InputError, match="16 and 8 bits"):
        index.pairs(1, against=HammingIndex(8))


def test_memory_does_not_grow_with_the_number_of_pairs(monkeypatch):
    monkeypatch.setattr(pairs, "PAIRS_AT_ONCE", 1 << 14)
    monkeypatch.setattr(pairs, "PAIRS_IN_BLOCK", 1 << 12)
    codes = np.zeros((2000, 1), dtype=np.uint64)
    next(pairs.near_rows(codes[:10], 64, 1))
    tracemalloc.start()
    count = sum(len(block) for block in pairs.near_rows(codes, 64, 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 2000 * 1999 // 2
    assert peak < 24 * count / 10
