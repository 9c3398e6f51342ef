"""The same methods by other protocols: a table for each, since numbers of two protocols share no column."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from deephash_pipeline.reports.cells import CellMetrics, cell_protocol
from deephash_pipeline.reports.tables import map_table
from deephash_pipeline.retrieval.protocols import BESIDE_METRICS, Protocol, require_protocol

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
        heading: for readers.
        database: what was searched, in words.
        queries: number of queries.
        database_size: number of images searched.
        table: of `map_table`.
    """

    heading: str
    database: str
    queries: int
    database_size: int
    table: pd.DataFrame


def protocols_table(metrics: Iterable[CellMetrics], unseen: Iterable[CellMetrics]) -> pd.DataFrame:
    """All cells by all protocols, in long form.

    Args:
        metrics: of the cells of a benchmark, with those by the protocol beside.
        unseen: of the cells of the same benchmark with unseen classes, as far as they were run.

    Returns:
        Frame with columns `protocol`, `method` (key), `code_length`, mAP over the whole database and among the first
        1,000 by both conventions, `queries`, `database_size` and `chance_level`; the protocol of the cells first.
    """
    own = list(metrics)
    rows = [_row(cell, cell_protocol(cell)) for cell in own]
    rows += [row for cell in own if (row := _row_beside(cell)) is not None]
    rows += [_row(cell, cell_protocol(cell)) for cell in unseen if cell_protocol(cell).unseen]
    return pd.DataFrame(rows, columns=["protocol", "method", "code_length", *_COLUMNS])


def by_other_protocols(table: pd.DataFrame, display_names: Mapping[str, str]) -> list[ByProtocol]:
    """Lay out what the table of mAP does not show.

    Args:
        table: of `protocols_table`.
        display_names: display name of each method key.

    Returns:
        What the other protocols measured; and of a protocol with a k, the field's convention of mAP@k too.
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


def _row_beside(cell: CellMetrics) -> dict[str, Any] | None:
    beside = cell_protocol(cell).beside
    if beside is None or f"{beside}_mean_average_precision" not in cell:
        return None
    measured = {name: cell.get(f"{beside}_{name}") for name in BESIDE_METRICS}
    return _row({**cell, **measured}, require_protocol(beside))
