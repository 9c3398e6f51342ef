"""The paper's tables again: what was measured, on all four benchmarks, beside what was published.

A metric that is missing is NaN here; `for_readers` says in words why. No published value ever takes its place.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import pandas as pd

from deephash_pipeline.reports.cells import CellMetrics, cell_code_length, cell_metric, cell_protocol
from deephash_pipeline.reports.paper.published import (
    FEATURE_CODE_LENGTHS,
    MAIN_CODE_LENGTHS,
    beside_published,
    cited_map,
    published_map,
)

BENCHMARKS = {"mnist": "MNIST", "cifar10": "CIFAR10", "kaggle_face": "Kaggle-Face", "sun397": "SUN397"}
"""The paper's benchmarks, in its order, and their names there."""

HAND_CRAFTED_FEATURES = {"cifar10": "GIST", "sun397": "dense SIFT bag"}
"""Benchmark -> the feature that the paper has there; what was measured on another one is not compared."""

NETWORK_FEATURE = "CNN"
FEATURE_METHODS = ("lsh", "itq", "bre", "mlh", "ksh", "deephash_pretrained")

NOT_RUN = "not run"
NOT_PRINTED = "\N{EN DASH}"

FeatureScores: TypeAlias = Mapping[tuple[str, int], float]
"""Name of a method and code length -> mAP."""

Results: TypeAlias = Mapping[str, Sequence[CellMetrics]]
"""Benchmark -> metrics of the cells that were run there."""


def all_methods_table(results: Results, display_names: Mapping[str, str]) -> pd.DataFrame:
    """Table 'mAP of all methods': 12, 24 and 48 bits, and the true code lengths of what the paper only cites.

    Args:
        results: metrics of the cells that were run.
        display_names: display name of each method key, the 1-of-C code left out.

    Returns:
        Frame with columns `benchmark`, `method` (names), `code_length`, `measured`, `published`, `difference`, `cited`.
    """
    return _table(
        results,
        display_names,
        (
            (benchmark, method, code_length)
            for benchmark in BENCHMARKS
            for method in display_names
            for code_length in sorted({*MAIN_CODE_LENGTHS, *cited_map(benchmark, method)})
        ),
    )


def code_lengths_table(results: Results, display_names: Mapping[str, str], code_lengths: Iterable[int]) -> pd.DataFrame:
    """Points of the figure 'mAP against bits', as `all_methods_table` but without `cited`."""
    lengths = list(code_lengths)
    rows = ((benchmark, method, length) for benchmark in BENCHMARKS for method in display_names for length in lengths)
    return _table(results, display_names, rows).drop(columns="cited")


def features_table(
    results: Results, hand_crafted: Mapping[str, pd.DataFrame], display_names: Mapping[str, str]
) -> pd.DataFrame:
    """Table 'hand-crafted against CNN': 16 and 32 bits.

    Args:
        results: metrics of the cells that were run, on the network's features.
        hand_crafted: benchmark to a frame with columns `feature`, `method` (names), `code_length` and `measured`.
        display_names: display name of each method key.

    Returns:
        Frame with columns `benchmark`, `feature`, `method` (names), `code_length`, `measured`, `published`,
        `difference`.
    """
    tables = []
    for benchmark, feature in HAND_CRAFTED_FEATURES.items():
        by_hand: dict[Any, float] = {}
        if benchmark in hand_crafted:
            frame = hand_crafted[benchmark].set_index(["method", "code_length"])
            by_hand = frame.loc[frame["feature"] == feature, "measured"].to_dict()
        by_network = scores_by_paper(results.get(benchmark, ()), display_names)
        own = features_of_benchmark(benchmark, feature, (by_hand, by_network), display_names)
        own.insert(0, "benchmark", BENCHMARKS[benchmark])
        tables.append(own)
    return pd.concat(tables, ignore_index=True)


def features_of_benchmark(
    benchmark: str, feature: str, scores: tuple[FeatureScores, FeatureScores], display_names: Mapping[str, str]
) -> pd.DataFrame:
    """Give one benchmark's part of `features_table`.

    Args:
        benchmark: key.
        feature: name of the hand-crafted feature; the paper's values stand beside those on its own.
        scores: mAP on that feature and on the network's, by name of the method and code length.
        display_names: display name of each method key.
    """
    of_paper = HAND_CRAFTED_FEATURES.get(benchmark) == feature
    rows = []
    for name, own, table in zip((feature, NETWORK_FEATURE), scores, ("hand_crafted", "network"), strict=True):
        for method, length in product(FEATURE_METHODS, FEATURE_CODE_LENGTHS):
            compared = of_paper or name == NETWORK_FEATURE
            published = published_map(benchmark, method, length, table) if compared else math.nan
            score = own.get((display_names[method], length), math.nan)
            rows.append((name, display_names[method], length, score, published, score - published))
    return pd.DataFrame(rows, columns=["feature", "method", "code_length", "measured", "published", "difference"])


def for_readers(table: pd.DataFrame) -> pd.DataFrame:
    """Turn the numbers of a table into text of four digits.

    What was not measured reads "not run", so does its difference from a printed value; what the paper does not print
    is a dash.

    Example:
        >>> for_readers(pd.DataFrame({"method": ["ITQ"], "measured": [math.nan], "published": [0.2711]}))
          method measured published
        0    ITQ  not run    0.2711
    """
    shown = table.copy()
    for column in shown.columns.difference(["benchmark", "feature", "method", "code_length"], sort=False):
        missing = NOT_PRINTED if column in ("published", "difference", "cited") else NOT_RUN
        form = "{:+.4f}" if column == "difference" else "{:.4f}"
        shown[column] = [missing if math.isnan(value) else form.format(value) for value in table[column]]
    if "difference" in shown:
        shown.loc[table["measured"].isna() & table["published"].notna(), "difference"] = NOT_RUN
    return shown


def scores_by_paper(cells: Iterable[CellMetrics], display_names: Mapping[str, str]) -> FeatureScores:
    """Collect the mAP of the methods that have a name, as far as it was measured by the paper's protocol."""
    return {
        (display_names[cell["method"]], cell_code_length(cell)): cell_metric(cell, "mean_average_precision")
        for cell in cells
        if cell["method"] in display_names and cell_protocol(cell).name == "paper"
    }


def _table(results: Results, display_names: Mapping[str, str], cells: Iterable[tuple[str, str, int]]) -> pd.DataFrame:
    measured = {benchmark: scores_by_paper(own, display_names) for benchmark, own in results.items()}
    rows = []
    for benchmark, method, code_length in cells:
        name = display_names[method]
        score = measured.get(benchmark, {}).get((name, code_length), math.nan)
        beside = beside_published(benchmark, method, code_length, score)
        rows.append((BENCHMARKS[benchmark], name, code_length, *beside))
    columns = ["benchmark", "method", "code_length", "measured", "published", "difference", "cited"]
    return pd.DataFrame(rows, columns=columns)
