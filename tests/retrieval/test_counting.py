import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numba.core.registry import cpu_target

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval import count_distances, counting, pack_bits
from deephash_pipeline.retrieval.code_files import LabelledCodes
from deephash_pipeline.retrieval.kernels.compiled import popcount
from deephash_pipeline.retrieval.kernels.histograms import BLOCK_ITEMS
from tests.retrieval.random_codes import EQUAL, distances_to, in_order, is_relevant, random_problem


def count(problem):
    return count_distances(*problem)


def of_bits(query_bits, query_labels, database_bits, database_labels):
    codes = pack_bits(query_bits), query_labels, pack_bits(database_bits), database_labels
    return LabelledCodes(*codes, query_bits.shape[1])


def count_one_by_one(problem):
    everything = np.zeros((len(problem.query_codes), problem.code_length + 1), dtype=np.int64)
    relevant = np.zeros_like(everything)
    for query, (code, label) in enumerate(zip(problem.query_codes, problem.query_labels, strict=True)):
        distances = distances_to(problem, code)
        np.add.at(everything[query], distances, 1)
        np.add.at(relevant[query], distances[is_relevant(problem, label)], 1)
    return everything, relevant


def assert_equal(found, all, relevant):
    np.testing.assert_array_equal(found.all, all)
    np.testing.assert_array_equal(found.relevant, relevant)


@given(
    seed=st.integers(0, 2**32 - 1),
    queries=st.integers(1, 6),
    items=st.integers(1, 70),
    code_length=st.integers(1, 504) | st.integers(505, 4096),
    classes=st.integers(1, 9),
    prototypes=st.integers(1, 80),
    share=st.none() | st.floats(0, 1),
)
@settings(deadline=None, max_examples=200)
def test_counts_equal_those_of_a_plain_loop(seed, queries, items, code_length, classes, prototypes, share):
    """With a share, an item has several labels, and is relevant if it has one of the query's."""
    problem = random_problem(seed, queries, items, code_length, classes, prototypes)
    if share is not None:
        rng = np.random.default_rng(seed)
        several = (rng.random((count, classes)) < share for count in (queries, items))
        problem = problem._replace(**dict(zip(("query_labels", "database_labels"), several, strict=True)))
    assert_equal(count(problem), *count_one_by_one(problem))


@pytest.mark.parametrize("items", [1, BLOCK_ITEMS - 1, BLOCK_ITEMS, BLOCK_ITEMS + 1, 3 * BLOCK_ITEMS + 3])
def test_counts_are_right_on_both_sides_of_a_block_boundary(items):
    problem = random_problem(seed=items, queries=4, items=items, code_length=65, classes=2)
    assert_equal(count(problem), *count_one_by_one(problem))


@pytest.mark.parametrize("bits", [256, 397, 504, 511, 512, 1024, 4095, 4096])
def test_opposite_codes_differ_in_all_bits(bits):
    histograms = count(of_bits(np.ones((1, bits), bool), np.array([0]), np.zeros((9, bits), bool), np.arange(9)))
    assert histograms.all[0, bits] == 9
    assert histograms.relevant[0, bits] == 1


def test_merged_counts_of_shards_are_the_counts_of_the_whole():
    problem = random_problem(seed=3, queries=20, items=500, code_length=48)
    first, second, third = (count(in_order(problem, rows)) for rows in np.split(np.arange(500), [1, 320]))
    whole = count(problem)
    assert_equal(first.merge(second).merge(third), whole.all, whole.relevant)


@pytest.mark.parametrize("several_labels", [False, True])
def test_shards_on_a_disk_are_the_counts_of_the_whole(several_labels, tmp_path, monkeypatch):
    problem = random_problem(seed=9, queries=20, items=500, code_length=48)
    if several_labels:
        problem = problem._replace(
            query_labels=problem.query_labels[:, None] <= np.arange(4),
            database_labels=problem.database_labels[:, None] == np.arange(4),
        )
    whole = count(problem)
    np.save(tmp_path / "codes.npy", problem.database_codes)
    np.save(tmp_path / "labels.npy", problem.database_labels)
    monkeypatch.setattr(counting, "SHARD_ITEMS", 67)
    database = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("codes", "labels"))
    on_disk = count_distances(problem.query_codes, problem.query_labels, *database, code_length=48)
    assert_equal(on_disk, whole.all, whole.relevant)


def counts_ones():
    """Whether the processor that numba compiles for is of x86 and has the instruction."""
    machine, _, features = cpu_target.target_context.codegen().magic_tuple()
    return machine.startswith("x86_64") and "+popcnt" in features.split(",")


@pytest.mark.skipif(not counts_ones(), reason="the processor has no such instruction")
def test_ones_are_counted_by_the_instruction_of_the_processor():
    ones = njit(lambda words: popcount(words[0]))
    assert ones(np.array([2**63 + 5], dtype=np.uint64)) == 3
    assert "popcnt" in "".join(ones.inspect_asm().values())


@pytest.mark.skipif(numba.get_num_threads() < 2, reason="one thread is all there is")
@pytest.mark.usefixtures("restored_threads")
def test_the_number_of_threads_does_not_matter():
    problem = random_problem(seed=4, queries=101, items=3000, code_length=48)
    numba.set_num_threads(1)
    one = count(problem)
    numba.set_num_threads(2)
    assert_equal(count(problem), one.all, one.relevant)


@pytest.mark.parametrize(("labels", "others"), [([2**60, 2**60 + 1], np.uint64), ([-(2**63), 2**63 - 1], np.int64)])
def test_labels_beyond_the_digits_of_a_float_or_the_difference_of_two_numbers_stay_apart(labels, others):
    bits, large = np.zeros((2, 8), dtype=bool), np.array(labels)
    assert count(of_bits(bits, large, bits, large.astype(others))).relevant[:, 0].tolist() == [1, 1]


CODES, LABELS = EQUAL["query_codes"], EQUAL["query_labels"]
FLAGS = np.zeros((4, 3), dtype=bool)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query_codes": CODES.astype(np.int64)}, "query_codes must be a two-dimensional uint8"),
        ({"database_codes": CODES[:, :1]}, "database_codes has 1 bytes per code, but 12 bits take 2"),
        ({"database_codes": CODES + np.uint8(1)}, "database_codes has bits set beyond code_length = 12"),
        ({"query_labels": LABELS[:3]}, "query_labels has 3 entries for 4 codes"),
        ({"database_labels": LABELS.astype(float)}, "database_labels must be a one-dimensional integer array"),
        ({"database_labels": LABELS[:, None]}, "must both be one class number per item, or both be"),
        ({"query_labels": FLAGS, "database_labels": FLAGS.astype(int)}, "must both be one class number per item"),
        ({"query_labels": FLAGS, "database_labels": FLAGS[:, :2]}, "query_labels has 3 classes and database_labels 2"),
        ({"query_labels": FLAGS, "database_labels": FLAGS[:3]}, "database_labels has 3 entries for 4 codes"),
        ({"query_codes": CODES[:0], "query_labels": LABELS[:0]}, "query_labels is empty"),
        ({"database_codes": CODES[:0], "database_labels": LABELS[:0]}, "database_labels is empty"),
        ({"code_length": 0}, "code_length is 0 bits"),
    ],
)
def test_input_that_cannot_be_counted_is_refused_by_name(changes, message):
    with pytest.raises(InputError, match=message):
        count_distances(**(EQUAL | changes))


@pytest.mark.parametrize("label", [2**16 - 1, 2**16, 2**16 + 1])
def test_labels_far_apart_are_not_taken_for_each_other(label):
    codes, labels = np.zeros((3, 1), dtype=np.uint8), np.array([0, label, 1])
    assert count_distances(codes, labels, codes, labels, 8).relevant.sum(axis=1).tolist() == [1, 1, 1]
