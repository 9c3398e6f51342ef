from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.codes import synthetic_codes
from benchmarks.rivals import RIVALS, count_without_compiler
from deephash_pipeline.retrieval import (
    LabelledCodes,
    average_precision_bounds,
    count_distances,
    mean_average_precision,
    pack_bits,
)

ITEMS = 40


@pytest.fixture(params=RIVALS, ids=lambda rival: rival.name)
def rival(request):
    found = request.param
    if found.package is not None and find_spec(found.package) is None:
        pytest.skip(f"{found.package} is not installed; `make bench` installs it")
    return found


def without_ties(code_length):
    """Items with 0, 1, 2, ... ones in a random order, searched with no ones and with nothing but ones."""
    generator = np.random.default_rng(code_length)
    items = min(ITEMS, code_length)
    ones = np.arange(code_length) < generator.permutation(items)[:, None]
    database = generator.permuted(ones, axis=1)
    queries = np.array([[False] * code_length, [True] * code_length])
    labels = np.arange(items) % 3
    return LabelledCodes(
        pack_bits(queries), np.array([0, 2]), pack_bits(database), generator.permutation(labels), code_length
    )


@pytest.mark.parametrize("code_length", [12, 24, 48, 64])
def test_without_ties_every_rival_gives_the_same_metric(rival, code_length):
    benchmark = without_ties(code_length)
    metric = rival.prepare(benchmark)()
    assert metric == pytest.approx(mean_average_precision(count_distances(*benchmark)), abs=1e-6)


@pytest.mark.parametrize("codes", ["random", "trained"])
def test_with_ties_every_rival_keeps_within_the_bounds_of_its_definition(rival, codes):
    benchmark = synthetic_codes(codes, 4, 12, 23, 700)
    histograms = count_distances(*benchmark)
    metric = rival.prepare(benchmark)()
    if rival.name == "scikit-learn":
        assert metric == pytest.approx(np.mean(precision_at_group_ends(histograms.all, histograms.relevant)), abs=1e-12)
        return
    optimistic, pessimistic = (float(np.mean(bound)) for bound in average_precision_bounds(histograms))
    assert pessimistic - 1e-6 <= metric <= optimistic + 1e-6


def precision_at_group_ends(size, relevant):
    """scikit-learn's definition: all relevant items of a group count with the precision at its end."""
    precision = np.cumsum(relevant, axis=1) / np.maximum(np.cumsum(size, axis=1), 1)
    shares = np.sum(relevant * precision, axis=1) / relevant.sum(axis=1)
    return shares


@pytest.mark.parametrize("code_length", [3, 12, 24, 33, 64])
def test_counts_without_a_compiler_are_those_of_the_kernel(code_length):
    benchmark = synthetic_codes("trained", 7, code_length, 30, 500)
    unknown = benchmark.query_labels.copy()
    unknown[:5] = 99
    benchmark = benchmark._replace(query_labels=unknown)
    counted, expected = count_without_compiler(benchmark), count_distances(*benchmark)
    assert np.array_equal(counted.all, expected.all)
    assert np.array_equal(counted.relevant, expected.relevant)
