import numpy as np
import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval import DistanceHistograms, GradedHistograms, mean_average_precision, retrieval_metrics


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
def test_tables_that_are_no_counts_of_one_database_are_refused(all, relevant, message):
    with pytest.raises(InputError, match=message):
        DistanceHistograms(np.array(all), np.array(relevant))


def test_histograms_without_a_query_have_no_metrics():
    nothing = np.zeros((0, 13), dtype=np.int64)
    none = DistanceHistograms(nothing, nothing)
    for metric in (mean_average_precision, retrieval_metrics):
        with pytest.raises(InputError, match="there are no queries to measure; count at least one"):
            metric(none)


def test_histograms_of_different_code_lengths_do_not_merge():
    short, long = (DistanceHistograms(*np.ones((2, 2, bits + 1), dtype=np.int64)) for bits in (12, 24))
    with pytest.raises(InputError, match="cannot be merged"):
        short.merge(long)


def test_merging_leaves_the_shards_as_they_are():
    shards = [GradedHistograms(np.ones((grades, 1, 3), dtype=np.int64)) for grades in (3, 2)]
    assert shards[0].merge(shards[1]).counts.tolist() == [[[2, 2, 2]], [[2, 2, 2]], [[1, 1, 1]]]
    assert all((shard.counts == 1).all() for shard in shards)
