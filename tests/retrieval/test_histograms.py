from collections.abc import Iterator
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from deephash_pipeline.errors import InputError
from deephash_pipeline.retrieval import DistanceHistograms, count_distances, pack_bits
from deephash_pipeline.retrieval.histograms import BLOCK_ITEMS


class Problem(NamedTuple):
    query_bits: NDArray[np.bool_]
    query_labels: NDArray[np.int64]
    database_bits: NDArray[np.bool_]
    database_labels: NDArray[np.int64]

    def part(self, rows: Any) -> "Problem":
        return self._replace(database_bits=self.database_bits[rows], database_labels=self.database_labels[rows])


def random_problem(
    seed: int, queries: int, items: int, code_length: int, classes: int = 5, prototypes: int = 50
) -> Problem:
    """Few prototypes give equal codes and ties; the first and the last class of the queries are not in the database."""
    rng = np.random.default_rng(seed)
    codes = rng.random((prototypes, code_length)) < 0.5
    return Problem(
        codes[rng.integers(0, prototypes, queries)],
        rng.integers(-1, classes + 1, queries),
        codes[rng.integers(0, prototypes, items)],
        rng.integers(0, classes, items),
    )


def count(problem: Problem) -> DistanceHistograms:
    return count_distances(
        pack_bits(problem.query_bits),
        problem.query_labels,
        pack_bits(problem.database_bits),
        problem.database_labels,
        problem.query_bits.shape[1],
    )


def count_one_by_one(problem: Problem) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    everything = np.zeros((len(problem.query_bits), problem.query_bits.shape[1] + 1), dtype=np.int64)
    relevant = np.zeros_like(everything)
    for query, (bits, label) in enumerate(zip(problem.query_bits, problem.query_labels, strict=True)):
        distances = np.count_nonzero(problem.database_bits != bits, axis=1)
        np.add.at(everything[query], distances, 1)
        np.add.at(relevant[query], distances[problem.database_labels == label], 1)
    return everything, relevant


def assert_equal(found: DistanceHistograms, all: NDArray[np.int64], relevant: NDArray[np.int64]) -> None:
    np.testing.assert_array_equal(found.all, all)
    np.testing.assert_array_equal(found.relevant, relevant)


@pytest.fixture
def restored_threads() -> Iterator[None]:
    threads = numba.get_num_threads()
    yield
    numba.set_num_threads(threads)


@given(
    seed=st.integers(0, 2**32 - 1),
    queries=st.integers(1, 6),
    items=st.integers(1, 70),
    code_length=st.integers(1, 256),
    classes=st.integers(1, 5),
    prototypes=st.integers(1, 80),
)
@settings(deadline=None)
def test_counts_equal_those_of_a_plain_loop(
    seed: int, queries: int, items: int, code_length: int, classes: int, prototypes: int
) -> None:
    problem = random_problem(seed, queries, items, code_length, classes, prototypes)
    assert_equal(count(problem), *count_one_by_one(problem))


@pytest.mark.parametrize("items", [1, BLOCK_ITEMS - 1, BLOCK_ITEMS, BLOCK_ITEMS + 1, 3 * BLOCK_ITEMS + 3])
def test_counts_are_right_on_both_sides_of_a_block_boundary(items: int) -> None:
    problem = random_problem(seed=items, queries=4, items=items, code_length=65, classes=2)
    assert_equal(count(problem), *count_one_by_one(problem))


def test_opposite_codes_of_256_bits_are_256_apart() -> None:
    histograms = count(Problem(np.ones((1, 256), bool), np.array([0]), np.zeros((9, 256), bool), np.arange(9)))
    assert histograms.all[0, 256] == 9
    assert histograms.relevant[0, 256] == 1


def test_the_last_item_of_the_database_is_counted() -> None:
    histograms = count(Problem(np.ones((1, 12), bool), np.array([3]), np.ones((7, 12), bool), np.array([0] * 6 + [3])))
    assert histograms.all[0, 0] == 7
    assert histograms.relevant[0, 0] == 1


def test_the_order_of_the_database_does_not_matter() -> None:
    problem = random_problem(seed=1, queries=20, items=500, code_length=12)
    by_class = count(problem.part(np.argsort(problem.database_labels)))
    shuffled = count(problem.part(np.random.default_rng(2).permutation(500)))
    assert_equal(shuffled, by_class.all, by_class.relevant)


def test_merged_counts_of_shards_are_the_counts_of_the_whole() -> None:
    problem = random_problem(seed=3, queries=20, items=500, code_length=48)
    first, second, third = (count(problem.part(rows)) for rows in np.split(np.arange(500), [1, 320]))
    whole = count(problem)
    assert_equal(first.merge(second).merge(third), whole.all, whole.relevant)


@pytest.mark.skipif(numba.get_num_threads() < 2, reason="one thread is all there is")
@pytest.mark.usefixtures("restored_threads")
def test_the_number_of_threads_does_not_matter() -> None:
    problem = random_problem(seed=4, queries=101, items=3000, code_length=48)
    numba.set_num_threads(1)
    one = count(problem)
    numba.set_num_threads(2)
    assert_equal(count(problem), one.all, one.relevant)


def test_distances_are_whole_because_a_bit_is_set_or_not() -> None:
    histograms = count(random_problem(seed=5, queries=3, items=100, code_length=24))
    assert histograms.all.dtype == histograms.relevant.dtype == np.int64
    assert histograms.all.sum(axis=1).tolist() == [100, 100, 100]


def test_labels_may_be_of_any_integer_type() -> None:
    problem = random_problem(seed=6, queries=5, items=50, code_length=12)._replace(query_labels=np.arange(5))
    expected = count(problem)
    small = problem._replace(
        query_labels=problem.query_labels.astype(np.uint8), database_labels=problem.database_labels.astype(np.uint64)
    )
    assert_equal(count(small), expected.all, expected.relevant)


def test_labels_beyond_the_digits_of_a_float_stay_apart() -> None:
    bits = np.zeros((2, 8), dtype=bool)
    large = np.array([2**60, 2**60 + 1])
    assert count(Problem(bits, large, bits, large.astype(np.uint64))).relevant[:, 0].tolist() == [1, 1]


CODES = np.zeros((4, 2), dtype=np.uint8)
LABELS = np.zeros(4, dtype=np.int64)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query_codes": CODES.astype(np.int64)}, "query_codes must be a two-dimensional uint8"),
        ({"database_codes": CODES[:, :1]}, "database_codes has 1 bytes per code, but 12 bits take 2"),
        ({"database_codes": CODES + np.uint8(1)}, "database_codes has bits set beyond code_length = 12"),
        ({"query_labels": LABELS[:3]}, "query_labels has 3 entries for 4 codes"),
        ({"database_labels": LABELS.astype(float)}, "database_labels must be a one-dimensional integer array"),
        ({"database_labels": LABELS[:, None]}, "database_labels must be a one-dimensional integer array"),
        ({"query_codes": CODES[:0], "query_labels": LABELS[:0]}, "query_labels is empty"),
        ({"database_codes": CODES[:0], "database_labels": LABELS[:0]}, "database_labels is empty"),
        ({"code_length": 0}, "code_length is 0 bits"),
    ],
)
def test_input_that_cannot_be_counted_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "query_codes": CODES,
        "query_labels": LABELS,
        "database_codes": CODES,
        "database_labels": LABELS,
        "code_length": 12,
    }
    with pytest.raises(InputError, match=message):
        count_distances(**(arguments | changes))


@pytest.mark.parametrize(
    ("all", "relevant", "message"),
    [
        ([[1.0, 2.0]], [[1.0, 0.0]], "int64"),
        ([1, 2], [1, 0], r"\(queries, code_length \+ 1\)"),
        ([[1, 2]], [[1, 0, 0]], "shape"),
        ([[1, 0]], [[1, 2]], "swapped"),
        ([[1, 2]], [[-1, 0]], "between 0 and all"),
        ([[1, 2], [1, 1]], [[0, 0], [0, 0]], "one database size"),
        ([[0, 0]], [[0, 0]], "one database size"),
    ],
)
def test_tables_that_are_no_counts_of_one_database_are_refused(all: Any, relevant: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        DistanceHistograms(np.array(all), np.array(relevant))


def test_histograms_without_a_query_are_refused() -> None:
    nothing = np.zeros((0, 13), dtype=np.int64)
    with pytest.raises(InputError, match="at least one query"):
        DistanceHistograms(nothing, nothing)


def test_histograms_of_different_code_lengths_do_not_merge() -> None:
    short, long = (count(random_problem(seed=7, queries=2, items=9, code_length=bits)) for bits in (12, 24))
    with pytest.raises(InputError, match="cannot be merged"):
        short.merge(long)
