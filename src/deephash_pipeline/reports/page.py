"""The report: one HTML page that needs neither network nor any other file."""

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from deephash_pipeline.common.parameters import Parameters
from deephash_pipeline.common.templates import render
from deephash_pipeline.reports.cells import ABSENT
from deephash_pipeline.reports.paper.published import (
    CITED_HEADING,
    CITED_NOTE,
    FEATURE_CODE_LENGTHS,
    MAIN_CODE_LENGTHS,
    citations,
)
from deephash_pipeline.reports.tables import ByProtocol
from deephash_pipeline.retrieval.protocols import Protocol

_MINUS = "\N{MINUS SIGN}"
_DIGITS = 4
_COMPARED = ("measured", "published", "difference")

_MARGIN = 24
_PANEL_TITLE_MARGIN = 48
_DEFAULT_HEIGHT = 480


class TableCell(NamedTuple):
    """One number of a table as the reader sees it, with its CSS classes."""

    text: str
    classes: str = ""


class TableRow(NamedTuple):
    """A row label and its numbers."""

    label: str
    cells: list[TableCell]
    classes: str = ""


class Comparison(NamedTuple):
    """Measured and published metrics at the code lengths of one of the paper's tables, and what the paper cites."""

    code_lengths: list[int]
    rows: list[TableRow]
    cited: dict[str, str]


@dataclass(frozen=True)
class Report:
    """What the page shows.

    Attributes:
        benchmark: name by which the paper's metrics are looked up.
        protocol: protocol that the cells were measured by.
        summary: facts at the top of the page, label to text.
        map_table: table as `tables.map_table` returns it.
        methods: display name of each method key; other rows of `map_table` are references.
        comparison_table: table as `tables.comparison_table` returns it; shown are the methods and code lengths for
            which the paper prints or cites a metric, in the paper's tables.
        by_protocol: tables of what other protocols measured.
        figures: anchor in the page to figure; the heading is the figure's title, the line below it the
            `how_to_read` text of its `layout.meta`.
        gallery: HTML as `gallery.retrieval_gallery` returns it.
        made_with: facts that the metrics were made with (code, packages, parameters), label to text; none, no section.
        notes: remarks at the end of the page, one paragraph each.
    """

    benchmark: str
    protocol: Protocol
    summary: Mapping[str, str]
    map_table: pd.DataFrame
    comparison_table: pd.DataFrame
    methods: Mapping[str, str]
    by_protocol: Sequence[ByProtocol] = ()
    figures: Mapping[str, go.Figure] = field(default_factory=dict)
    gallery: str = ""
    made_with: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()


class ReportingParameters(Parameters):
    """What to show.

    Attributes:
        notes: paragraphs of the page, such as where the images come from.
        written: time of writing and seconds of the run until then, label to text; the run fills it in.
    """

    notes: tuple[str, ...] = ()
    written: Mapping[str, str] = {}


def render_report(title: str, report: Report) -> str:
    """Render the report as one self-contained HTML page: plotly.js and the gallery's pictures are part of it.

    Args:
        title: heading of the page.
        report: contents that stand below it.
    """
    by_protocol = [(by, list(by.table.columns), _rows(by.table, report.methods.values())) for by in report.by_protocol]
    figures = [_placed(anchor, figure) for anchor, figure in report.figures.items()]
    return render(
        Path(__file__).with_name("templates") / "report.html.j2",
        title=title,
        code_lengths=list(report.map_table.columns),
        map_rows=_rows(report.map_table, report.methods.values()),
        comparisons=_comparisons(report),
        cited_heading=CITED_HEADING,
        cited_note=CITED_NOTE,
        plotly_js=Markup(get_plotlyjs()),
        **vars(report) | {"by_protocol": by_protocol, "figures": figures, "gallery": Markup(report.gallery)},
    )


def _rows(table: pd.DataFrame, methods: Collection[str], kinds: Sequence[str] = ()) -> list[TableRow]:
    """Turn numbers into what the reader sees; a difference has a sign. One seed has no verdict: no best is marked."""
    rows = []
    for label, values in zip(map(str, table.index), table.to_numpy(dtype="float64").tolist(), strict=True):
        cells = [
            _difference(value) if kind == "difference" else TableCell(_number(value))
            for value, kind in itertools.zip_longest(values, kinds)
        ]
        rows.append(TableRow(label, cells, "" if label in methods else "reference"))
    return rows


def _comparisons(report: Report) -> list[Comparison]:
    table = report.comparison_table
    all_cited = citations(report.benchmark, report.methods) if report.protocol.name == "paper" else {}
    printed = table[table["published"].notna()]
    comparisons = []
    for paper_lengths in (MAIN_CODE_LENGTHS, FEATURE_CODE_LENGTHS):
        code_lengths = [length for length in paper_lengths if length in set(printed["code_length"])]
        methods = set(printed.loc[printed["code_length"].isin(code_lengths), "method"])
        # What the paper cites stands in its table of all methods.
        cited = all_cited if paper_lengths == MAIN_CODE_LENGTHS else {}
        shown = table[table["code_length"].isin(code_lengths) & table["method"].isin(methods | cited.keys())]
        if shown.empty:
            continue
        names = list(dict.fromkeys(shown["method"]))
        columns = [(kind, length) for length in code_lengths for kind in _COMPARED]
        wide = shown.pivot(index="method", columns="code_length", values=[*_COMPARED]).reindex(names)[columns]
        rows = _rows(wide, names, [kind for kind, _ in columns])
        comparisons.append(Comparison(code_lengths, rows, {name: cited[name] for name in names if name in cited}))
    return comparisons


def _number(value: float) -> str:
    return ABSENT if pd.isna(value) else f"{value:.{_DIGITS}f}"


def _difference(value: float) -> TableCell:
    if pd.isna(value):
        return TableCell(ABSENT, "difference")
    text = f"{value:+.{_DIGITS}f}".replace("-", _MINUS)
    return TableCell(text, "difference above" if value > 0 else "difference below")


def _placed(anchor: str, figure: go.Figure) -> dict[str, object]:
    """What the page shows of a figure; its JSON is filled in by a script."""
    many_panels = len(list(figure.select_xaxes())) > 1
    height = int(figure.layout.height or _DEFAULT_HEIGHT)
    margin = _PANEL_TITLE_MARGIN if many_panels else _MARGIN
    untitled = go.Figure(figure).update_layout(title=None, margin_t=margin, height=height)
    meta = figure.layout.meta if isinstance(figure.layout.meta, Mapping) else {}
    return dict(
        anchor=re.sub(r"[^A-Za-z0-9_-]+", "-", anchor),
        heading=figure.layout.title.text or anchor,
        how_to_read=str(meta.get("how_to_read", "")),
        height=height,
        # A "<" inside a script element could end it; JSON may spell any character as an escape.
        json=Markup(str(untitled.to_json()).replace("<", "\\u003c")),
    )
