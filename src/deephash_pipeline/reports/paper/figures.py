"""The paper's two figures again, a panel for each of its four benchmarks."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from deephash_pipeline.reports.panels import REFERENCE_COLOUR, line_and_markers, method_styles, report_template
from deephash_pipeline.reports.paper.published import VARIANTS
from deephash_pipeline.reports.paper.tables import BENCHMARKS, NOT_RUN

_COLUMNS_OF_PANELS = 2
_PANELS_HEIGHT = 760
_HEADER_HEIGHT = 100
_LEGEND_HEIGHT_PER_METHOD = 8
_LEGEND_HEIGHT = 80
_DIGITS = 5


def paper_figure_map(table: pd.DataFrame, display_names: Mapping[str, str]) -> go.Figure:
    """Draw 'mAP against bits': measured curves, and the published values as open markers without a line.

    Args:
        table: table of `paper_tables.code_lengths_table`.
        display_names: display name of each method key; its order gives colours and legend.
    """
    figure = _four_panels(table, "measured", "Mean average precision by code length, measured and published")
    styles = method_styles(display_names)
    # Measured curves first: the legend shows what a method was added with first.
    for column in ("measured", "published"):
        for place, panel in enumerate(BENCHMARKS.values()):
            given = table[table["benchmark"] == panel].dropna(subset=[column])
            for method, name in display_names.items():
                own = given[given["method"] == name]
                if own.empty or (column == "published" and method in VARIANTS):
                    continue
                look = line_and_markers(styles[method], marker_size=7)
                if column == "published":
                    marker = {"color": styles[method].colour, "symbol": f"{styles[method].symbol}-open", "size": 9}
                    look = {"mode": "markers", "marker": {**marker, "line": {"width": 1.5}}}
                _add(figure, place, name, own[["code_length", column]], look)
    marker = {"color": REFERENCE_COLOUR, "symbol": "circle-open", "size": 9}
    look = {"mode": "markers", "marker": marker, "hoverinfo": "skip"}
    figure.add_scatter(x=[None], y=[None], name="as published (open, no line)", **look, row=1, col=1)
    figure.update_xaxes(title_text="Code length (bits)", tickvals=sorted(set(table["code_length"])))
    figure.update_yaxes(title_text="Mean average precision", rangemode="tozero")
    return _finished(
        figure,
        display_names,
        "Lines and filled markers are measured, open markers are what the paper prints: its curves have no numbers "
        "beyond its tables. Where nothing was run there are no lines. Click a name to hide a method.",
    )


def precision_recall_table(curves: Mapping[str, pd.DataFrame], display_names: Mapping[str, str]) -> pd.DataFrame:
    """Points of the figure 'precision-recall at 32 bits'.

    Args:
        curves: benchmark to a frame with columns `method` (key), `kind` (only "radius" is taken), `point`, `precision`
            and `recall` of one code length.
        display_names: display name of each method key.

    Returns:
        Frame with columns `benchmark`, `method` (names), `radius`, `precision`, `recall`. A method that was not run has
        one row, without metrics; radii within which nothing lies are left out.
    """
    frames = []
    for benchmark, panel in BENCHMARKS.items():
        of_benchmark = curves.get(benchmark, pd.DataFrame(columns=["method", "kind", "point", "precision", "recall"]))
        for method, name in display_names.items():
            own = of_benchmark[(of_benchmark["method"] == method) & (of_benchmark["kind"] == "radius")]
            own = own.dropna(subset=["precision", "recall"]).sort_values("point").rename(columns={"point": "radius"})
            own = own[["radius", "precision", "recall"]].astype("float64").round(_DIGITS)
            own = own if len(own) else pd.DataFrame([{}], columns=list(own))
            frames.append(own.assign(benchmark=panel, method=name))
    columns = ["benchmark", "method", "radius", "precision", "recall"]
    return pd.concat(frames, ignore_index=True)[columns].astype({"radius": "Int64"})


def paper_figure_precision_recall(table: pd.DataFrame, display_names: Mapping[str, str], code_length: int) -> go.Figure:
    """Draw 'precision-recall': precision against recall as the Hamming radius grows.

    Args:
        table: table of `precision_recall_table`.
        display_names: display name of each method key; its order gives colours and legend.
        code_length: bits.
    """
    figure = _four_panels(table, "precision", f"Precision and recall at {code_length} bits")
    styles = method_styles(display_names)
    for place, panel in enumerate(BENCHMARKS.values()):
        of_panel = table[table["benchmark"] == panel].dropna(subset=["precision"])
        for method, name in display_names.items():
            own = of_panel[of_panel["method"] == name].drop_duplicates(["precision", "recall"])
            if not own.empty:
                look = line_and_markers(styles[method], marker_size=4)
                _add(figure, place, name, own[["recall", "precision"]], look)
    figure.update_xaxes(title_text="Recall", range=[-0.01, 1.02])
    figure.update_yaxes(title_text="Precision", range=[0, 1.02])
    return _finished(
        figure,
        display_names,
        "Each marker is a Hamming radius, from 0 on the left to the code length on the right, where the whole database "
        "is returned. The paper prints no numbers for its curves.",
    )


def _four_panels(table: pd.DataFrame, measured: str, title: str) -> go.Figure:
    """Draw empty panels whose titles say how much of a benchmark was run."""
    titles = []
    for panel in BENCHMARKS.values():
        cells = table[table["benchmark"] == panel].groupby(["method", *({"code_length"} & {*table})], sort=False)
        ran = int(cells[measured].count().gt(0).sum())
        what = "cells" if "code_length" in table else "methods"
        titles.append(f"{panel}: {f'{ran} of {len(cells)} {what} run' if ran else NOT_RUN}")
    panels = make_subplots(
        rows=-(-len(titles) // _COLUMNS_OF_PANELS),
        cols=_COLUMNS_OF_PANELS,
        subplot_titles=titles,
        vertical_spacing=0.14,
        horizontal_spacing=0.09,
    )
    for place in range(len(titles)):
        # Plotly leaves out the axes of a panel without a trace, and with them what "not run" stands for.
        row, column = divmod(place, _COLUMNS_OF_PANELS)
        panels.add_scatter(x=[None], y=[None], showlegend=False, row=row + 1, col=column + 1)
    return panels.update_annotations(font_size=14).update_layout(template=report_template(), title_text=title)


def _add(figure: go.Figure, place: int, name: str, points: pd.DataFrame, look: Mapping[str, object]) -> None:
    """Add a curve of points (x, y) to a panel; a method has one entry in the legend, whatever panels it is in."""
    x, y = (points[column] for column in points)
    row, column = (part + 1 for part in divmod(place, _COLUMNS_OF_PANELS))
    # Lists, which Plotly writes as plain numbers: arrays would become base64, and no difference could be read.
    figure.add_scatter(
        x=x.tolist(),
        y=y.round(_DIGITS).tolist(),
        name=name,
        legendgroup=name,
        showlegend=all(trace.name != name for trace in figure.data),
        hovertemplate="%{x}: %{y:.4f}",
        **look,
        row=row,
        col=column,
    )


def _finished(figure: go.Figure, display_names: Mapping[str, str], how_to_read: str) -> go.Figure:
    entries = sum(trace.showlegend is not False for trace in figure.data)
    for rank, name in enumerate(display_names.values()):
        figure.update_traces(legendrank=rank, selector={"name": name})
    legend = _LEGEND_HEIGHT + _LEGEND_HEIGHT_PER_METHOD * entries
    return figure.update_layout(
        height=_HEADER_HEIGHT + _PANELS_HEIGHT + legend,
        margin={"t": _HEADER_HEIGHT, "b": legend},
        legend_y=-65 / _PANELS_HEIGHT,
        meta={"how_to_read": how_to_read},
    )
