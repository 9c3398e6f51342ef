"""Tables of measured metrics: alone, beside the published ones, and by other protocols, whose numbers share no column.

A metric that is missing stays NaN.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from deephash_pipeline.reports.cells import (
    CLASSIFIER_METHOD,
    CellMetrics,
    cell_code_length,
    cell_metric,
    cell_protocol,
    classifier_baseline_cell,
    grid_cells,
    shared_chance_level,
    shared_protocol,
)
from deephash_pipeline.reports.paper.published import beside_published
from deephash_pipeline.retrieval.protocols import BESIDE_METRICS, PROTOCOLS, Protocol, require_protocol

_REFERENCE_SUFFIX = " (reference)"

REAL_VALUED = {"z": "Real-valued z", "pq": "Product quantisation of z, not binary"}
"""What codes are compared with and are not: key in its metrics -> name in tables, by their order."""

_GRADED = ("ndcg_at_100", "acg_at_100", "wap_at_100")
"""Of images with several labels."""

_BESIDE = tuple(f"{name}_{metric}" for name in PROTOCOLS for metric in BESIDE_METRICS)
"""By the protocol beside that of the cells."""

_METRICS = (
    "mean_average_precision",
    "mean_average_precision_optimistic",
    "mean_average_precision_pessimistic",
    "mean_average_precision_at_1000",
    "mean_average_precision_at_1000_by_hits",
    *_GRADED,
    "precision_at_1000",
    "precision_within_radius_2",
    "lookup_failure_rate_radius_2",
    "chance_level",
    "validation_mean_average_precision",
    "distinct_database_codes",
    "mean_bit_balance",
    "queries",
    "queries_without_relevant_items",
    "database_size",
    *_BESIDE,
)


def map_table(
    metrics: Iterable[CellMetrics], display_names: Mapping[str, str], real_valued: Iterable[CellMetrics] = ()
) -> pd.DataFrame:
    """The metric of the cells' protocol, methods by code lengths: mAP over the whole database, or mAP@k.

    Reference rows end the table, most with one value in every column: the 1-of-C code, whose C bits do not follow the
    grid (its label says how many), if it was evaluated; real-valued features and product quantisation of them, if they
    were; and, where all of the database counts, the chance level of constant codes.

    Args:
        metrics: metrics of the cells, in any order.
        display_names: display name of each method key; its order is the order of the rows.
        real_valued: metrics of what is no code, by the keys of `REAL_VALUED`; what has no code length stands in every
            column. What was measured by another protocol is left out.

    Returns:
        float64 frame, index `method` (display names), columns the code lengths in bits as strings ("12", "16", ...);
        NaN where a cell was not evaluated.

    Raises:
        InputError: no cells, a repeated cell, an unnamed method, or cells of different protocols or databases.

    Example:
        >>> cell = {"method": "itq", "code_length": 12, "mean_average_precision": 0.5, "chance_level": 0.1}
        >>> map_table([cell], {"itq": "ITQ"})["12"].to_dict()
        {'ITQ': 0.5, 'Chance (reference)': 0.1}
    """
    given = list(metrics)
    cells = grid_cells(given, display_names)
    protocol = shared_protocol(given)
    columns = [str(code_length) for code_length in sorted({cell_code_length(cell) for cell in cells})]
    rows: dict[str, dict[str, float]] = {}
    for cell in cells:
        row = rows.setdefault(display_names[cell["method"]], {})
        row[str(cell_code_length(cell))] = cell_metric(cell, protocol.metric)
    baseline = classifier_baseline_cell(given)
    if baseline is not None:
        label = f"{display_names[CLASSIFIER_METHOD]}, {cell_code_length(baseline)} bits{_REFERENCE_SUFFIX}"
        rows[label] = dict.fromkeys(columns, cell_metric(baseline, protocol.metric))
    rows |= _real_valued_rows([cell for cell in real_valued if cell_protocol(cell) == protocol], columns)
    chance = shared_chance_level(given)
    if protocol.k is None:
        rows[f"Chance{_REFERENCE_SUFFIX}"] = dict.fromkeys(columns, chance)
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns, dtype="float64").rename_axis("method")


def _real_valued_rows(metrics: Iterable[CellMetrics], columns: Iterable[str]) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {f"{name}{_REFERENCE_SUFFIX}": {} for name in REAL_VALUED.values()}
    for cell in metrics:
        row = rows[f"{REAL_VALUED[str(cell['method'])]}{_REFERENCE_SUFFIX}"]
        value = cell_metric(cell, cell_protocol(cell).metric)
        row |= dict.fromkeys(columns, value) if cell["code_length"] is None else {str(cell_code_length(cell)): value}
    return {label: row for label, row in rows.items() if row}


def metrics_table(metrics: Iterable[CellMetrics], display_names: Mapping[str, str]) -> pd.DataFrame:
    """All metrics of all cells, one row per cell, the 1-of-C code last.

    Returns:
        Frame with columns `method` (display name), `code_length`, `protocol`, then the metrics under their names; those
        that a cell does not have are NaN. Metrics of graded relevance have a column where images have several labels,
        those by the protocol beside where there are images to search.

    Raises:
        InputError: no cells, a repeated cell or an unnamed method.
    """
    given = list(metrics)
    cells = [*grid_cells(given, display_names), *(cell for cell in given if cell["method"] == CLASSIFIER_METHOD)]
    optional = {*_GRADED, *_BESIDE}
    names = [name for name in _METRICS if name not in optional or any(name in cell for cell in cells)]
    return pd.DataFrame.from_records(
        [
            {
                **{name: math.nan if cell.get(name) is None else cell[name] for name in names},
                "method": display_names[cell["method"]],
                "code_length": cell_code_length(cell),
                "protocol": cell_protocol(cell).name,
            }
            for cell in cells
        ],
        columns=["method", "code_length", "protocol", *names],
    )


def comparison_table(metrics: Iterable[CellMetrics], benchmark: str, display_names: Mapping[str, str]) -> pd.DataFrame:
    """Measured beside published mean average precision, one row per evaluated cell of the grid.

    The 1-of-C code is left out: the paper has no such row. Where the paper prints no value, `published` and
    `difference` are NaN; so they are for the deep methods that the paper cites from publications with other protocols,
    and for all where the cells were measured by another protocol than the paper's.

    Returns:
        Frame with columns `method` (display name), `code_length`, `measured`, `published`,
        `difference` (measured minus published, in units of mean average precision) and `cited` (as the paper cites it,
        at its true code length; NaN elsewhere).

    Raises:
        InputError: no cells, a repeated cell, an unnamed method, or cells of different protocols.
    """
    rows = []
    cells = grid_cells(metrics, display_names)
    protocol = shared_protocol(cells)
    for cell in cells:
        method, code_length = cell["method"], cell_code_length(cell)
        measured = cell_metric(cell, protocol.published_metric)
        beside = beside_published(benchmark, method, code_length, measured)
        beside = beside if protocol.name == "paper" else (measured, math.nan, math.nan, math.nan)
        rows.append((display_names[method], code_length, *beside))
    return pd.DataFrame(rows, columns=["method", "code_length", "measured", "published", "difference", "cited"])


_COLUMNS = (
    "mean_average_precision",
    "mean_average_precision_at_1000",
    "mean_average_precision_at_1000_by_hits",
    "queries",
    "database_size",
    "chance_level",
)


@dataclass(frozen=True)
class ByProtocol:
    """Cells measured by one protocol, one metric of them.

    Attributes:
        heading: heading for readers.
        database: words for what was searched.
        queries: number of queries.
        database_size: number of images searched.
        table: table of `map_table`.
    """

    heading: str
    database: str
    queries: int
    database_size: int
    table: pd.DataFrame


def protocols_table(metrics: Iterable[CellMetrics], unseen: Iterable[CellMetrics]) -> pd.DataFrame:
    """All cells by all protocols, in long form.

    Args:
        metrics: metrics of the cells of a benchmark, with those by the protocol beside.
        unseen: metrics of the cells of the same benchmark with unseen classes, as far as they were run.

    Returns:
        Frame with columns `protocol`, `method` (key), `code_length`, mAP over the whole database and among the first
        1,000 by both conventions, `queries`, `database_size` and `chance_level`; the protocol of the cells first.
    """
    own = list(metrics)
    rows = [_row(cell, cell_protocol(cell)) for cell in own]
    for cell in own:
        beside = cell_protocol(cell).beside
        if beside and f"{beside}_mean_average_precision" in cell:
            measured = {name: cell.get(f"{beside}_{name}") for name in BESIDE_METRICS}
            rows.append(_row({**cell, **measured}, require_protocol(beside)))
    rows += [_row(cell, cell_protocol(cell)) for cell in unseen if cell_protocol(cell).unseen]
    return pd.DataFrame(rows, columns=["protocol", "method", "code_length", *_COLUMNS])


def by_other_protocols(table: pd.DataFrame, display_names: Mapping[str, str]) -> list[ByProtocol]:
    """Lay out what the table of mAP does not show.

    Args:
        table: table of `protocols_table`.
        display_names: display name of each method key.

    Returns:
        Tables of what the other protocols measured; and of a protocol with a k, the field's convention of mAP@k too.
    """
    shown = []
    for position, (name, cells) in enumerate(table.groupby("protocol", sort=False)):
        protocol = require_protocol(str(name))
        metrics = [] if position == 0 else [(protocol.name, protocol.metric)]
        if protocol.k is not None:
            field = f"{protocol.name}, mAP@{protocol.k} divided by the hits, as most published code has it"
            metrics.append((field, protocol.published_metric))
        for heading, metric in metrics:
            records = cells.to_dict("records")
            of_metric = [{**{str(key): cell[key] for key in cell}, protocol.metric: cell[metric]} for cell in records]
            sizes = (int(cells["queries"].iloc[0]), int(cells["database_size"].iloc[0]))
            shown.append(ByProtocol(heading, protocol.described, *sizes, map_table(of_metric, display_names)))
    return shown


def _row(cell: CellMetrics, protocol: Protocol) -> dict[str, Any]:
    identity = {"protocol": protocol.name, "method": cell["method"], "code_length": cell["code_length"]}
    return identity | {name: math.nan if cell.get(name) is None else cell[name] for name in _COLUMNS}
