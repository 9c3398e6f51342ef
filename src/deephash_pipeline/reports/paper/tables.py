"""The paper's tables again: what was measured, on all four benchmarks, beside what was published.

A metric that is missing is NaN here; `for_readers` says in words why. No published value ever takes its place.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeAlias

import pandas as pd

from deephash_pipeline.reports.cells import (
    ABSENT,
    CLASSIFIER_METHOD,
    CellMetrics,
    cell_code_length,
    cell_metric,
    cell_protocol,
    classifier_baseline_cell,
    distinct_cells,
)
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

_KEYS = ["benchmark", "feature", "method", "code_length"]
_BASELINE_METRICS = ["code_length", "mean_average_precision", "queries", "database_size", "chance_level"]

FeatureScores: TypeAlias = Mapping[tuple[str, int], float]
"""Name of a method and code length -> mAP."""

BenchmarkResults: TypeAlias = Mapping[str, Sequence[CellMetrics]]
"""Benchmark -> metrics of the cells that were run there."""


def all_methods_table(results: BenchmarkResults, display_names: Mapping[str, str]) -> pd.DataFrame:
    """Table 'mAP of all methods', at all code lengths of the paper's tables, and the true ones of what it only cites.

    Args:
        results: metrics of the cells that were run.
        display_names: display name of each method key, the 1-of-C code left out.

    Returns:
        Frame with columns `benchmark`, `method` (names), `code_length`, `measured`, `published`, `difference`, `cited`.
    """
    measured = {benchmark: scores_by_paper(own, display_names) for benchmark, own in results.items()}
    rows = []
    for benchmark, (method, name) in product(BENCHMARKS, display_names.items()):
        for code_length in sorted({*MAIN_CODE_LENGTHS, *FEATURE_CODE_LENGTHS, *cited_map(benchmark, method)}):
            score = measured.get(benchmark, {}).get((name, code_length), math.nan)
            beside = beside_published(benchmark, method, code_length, score)
            rows.append((BENCHMARKS[benchmark], name, code_length, *beside))
    columns = ["benchmark", "method", "code_length", "measured", "published", "difference", "cited"]
    return pd.DataFrame(rows, columns=columns)


def features_table(
    results: BenchmarkResults, hand_crafted: Mapping[str, pd.DataFrame], display_names: Mapping[str, str]
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
        missing = ABSENT if column in ("published", "difference", "cited") else NOT_RUN
        form = "{:+.4f}" if column == "difference" else "{:.4f}"
        shown[column] = [missing if math.isnan(value) else form.format(value) for value in table[column]]
    if "difference" in shown:
        shown.loc[table["measured"].isna() & table["published"].notna(), "difference"] = NOT_RUN
    return shown


def scores_by_paper(cells: Iterable[CellMetrics], display_names: Mapping[str, str]) -> FeatureScores:
    """Collect the mAP of the methods that have a name, as far as it was measured by the paper's protocol.

    Raises:
        InputError: a cell is repeated.
    """
    compared = [cell for cell in cells if cell["method"] in display_names and cell_protocol(cell).name == "paper"]
    return {
        (display_names[cell["method"]], cell_code_length(cell)): cell_metric(cell, "mean_average_precision")
        for cell in distinct_cells(compared)
    }


def with_stored_metrics(table: pd.DataFrame, stored: pd.DataFrame) -> pd.DataFrame:
    """Fill what a table lacks from the table that it replaces.

    Rows that the table no longer has, of a method under another name for example, are left out.

    Args:
        table: the new one, with NaN where nothing was measured.
        stored: the former one as read from its CSV, with words there.

    Example:
        >>> import math
        >>> table = pd.DataFrame({"method": ["ITQ", "KSH"], "code_length": 12, "measured": [math.nan, 0.6]})
        >>> stored = pd.DataFrame({"method": ["ITQ", "KSH"], "code_length": 12, "measured": ["0.3446", "0.5"]})
        >>> with_stored_metrics(table, stored)["measured"].tolist()
        [0.3446, 0.6]
    """
    keys = [name for name in _KEYS if name in table]
    former = stored.set_index(keys)[["measured"]].apply(pd.to_numeric, errors="coerce")
    filled = table.set_index(keys)
    filled[["measured"]] = filled[["measured"]].fillna(former)
    if "difference" in filled:
        filled["difference"] = filled["measured"] - filled["published"]
    return filled.reset_index()[list(table)]


def classifier_baselines_table(results: BenchmarkResults, stored: pd.DataFrame | None = None) -> pd.DataFrame:
    """Give each benchmark's 1-of-C code, whose metrics name the searched database: from its run, else as stored.

    What was measured by another protocol than the paper's is left out.

    Args:
        results: metrics of the cells that were run.
        stored: the former table.

    Returns:
        Frame with columns `benchmark` (key), `method` and `_BASELINE_METRICS`.
    """
    cells = {} if stored is None else {str(row["benchmark"]): row for row in _records(stored)}
    measured = {benchmark: classifier_baseline_cell(of_benchmark) for benchmark, of_benchmark in results.items()}
    cells |= {benchmark: cell for benchmark, cell in measured.items() if cell and cell_protocol(cell).name == "paper"}
    rows = [{**cell, "benchmark": benchmark} for benchmark, cell in sorted(cells.items())]
    return pd.DataFrame(rows, columns=["benchmark", "method", *_BASELINE_METRICS]).convert_dtypes()


def with_classifier_baselines(results: BenchmarkResults, table: pd.DataFrame) -> dict[str, list[CellMetrics]]:
    """Give every benchmark the 1-of-C code of the table in place of its own.

    Args:
        results: metrics of the cells that were run.
        table: table of `classifier_baselines_table`.
    """
    cells = {
        benchmark: [cell for cell in of_benchmark if cell["method"] != CLASSIFIER_METHOD]
        for benchmark, of_benchmark in results.items()
    }
    for row in _records(table):
        cells.setdefault(str(row["benchmark"]), []).append(row)
    return cells


def _records(table: pd.DataFrame) -> list[CellMetrics]:
    return [{str(name): value for name, value in row.items() if pd.notna(value)} for row in table.to_dict("records")]
