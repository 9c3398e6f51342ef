"""The paper's figures and the training curves, as Plotly figures in one style.

Every figure carries a line for its reader in `layout.meta["how_to_read"]`, so that the line stays with the figure
wherever it is stored.
"""

from collections.abc import Iterable, Mapping

import pandas as pd
import plotly.graph_objects as go

from deephash_pipeline.errors import InputError
from deephash_pipeline.reports.cells import (
    CLASSIFIER_BASELINE,
    CellMetrics,
    cell_code_length,
    cell_figure,
    grid_cells,
    method_name,
    shared_chance_level,
    yardstick_cell,
)
from deephash_pipeline.reports.style import REFERENCE_COLOUR, line_and_markers, method_styles, report_template

_PLOT_HEIGHT = 460
_LEGEND_HEIGHT_PER_CURVE = 14


def figure_map_by_code_length(metrics: Iterable[CellMetrics], display_names: Mapping[str, str]) -> go.Figure:
    """Mean average precision against code length, one curve per method (the paper's figure of mAP scores).

    The 1-of-C code, which has no place on the axis of code lengths, and the chance level are horizontal lines.

    Args:
        metrics: metrics of the cells, in any order.
        display_names: display name of each method key; its order gives colours and legend.

    Raises:
        InputError: no cells, a repeated cell, an unnamed method, or cells of different databases.
    """
    given = list(metrics)
    cells = grid_cells(given, display_names)
    code_lengths = sorted({cell_code_length(cell) for cell in cells})
    styles = method_styles(display_names)
    figure = go.Figure()
    for method in dict.fromkeys(str(cell["method"]) for cell in cells):
        own = [cell for cell in cells if cell["method"] == method]
        bounds = ("mean_average_precision_pessimistic", "mean_average_precision_optimistic")
        figure.add_scatter(
            x=[cell_code_length(cell) for cell in own],
            y=[cell_figure(cell, "mean_average_precision") for cell in own],
            customdata=[[cell_figure(cell, bound) for bound in bounds] for cell in own],
            name=display_names[method],
            hovertemplate="%{x} bits: %{y:.4f}<br>by order of ties: %{customdata[0]:.4f} to %{customdata[1]:.4f}",
            **line_and_markers(styles[method], marker_size=9),
        )
    yardstick = yardstick_cell(given)
    if yardstick is not None:
        name = f"{method_name(CLASSIFIER_BASELINE, display_names)} ({cell_code_length(yardstick)} bits)"
        _add_level(figure, name, cell_figure(yardstick, "mean_average_precision"), code_lengths, "longdash")
    _add_level(figure, "Chance", shared_chance_level(given), code_lengths, "dot")
    figure.update_layout(
        template=report_template(),
        title_text="Mean average precision by code length",
        height=_PLOT_HEIGHT + _LEGEND_HEIGHT_PER_CURVE * len(figure.data),
        legend_y=-0.16,
        meta={
            "how_to_read": "Higher is better: 1 means that all images of the query's class precede all others. "
            "Grey lines are references, drawn across because they do not depend on the code length: the classifier's "
            "own 1-of-C code, and chance (all codes equal). Click a name to hide a curve, double-click to see it alone."
        },
    )
    figure.update_xaxes(title_text="Code length (bits)", tickvals=code_lengths)
    figure.update_yaxes(title_text="Mean average precision", rangemode="tozero")
    return figure


def figure_precision_recall(curves: pd.DataFrame, display_names: Mapping[str, str], code_length: int = 32) -> go.Figure:
    """Precision against recall as the Hamming radius grows, at one code length (the paper's figure at 32 bits).

    Both are micro-averages: counts are summed over the queries before they are divided. The 1-of-C code is not drawn:
    its code length is not the figure's.

    Args:
        curves: frame with columns `method`, `code_length`, `kind` ("radius" or "rank"; only "radius" is drawn),
            `point` (the radius), `precision` and `recall`. Points without precision (empty balls) are left out.
        display_names: display name of each method key; its order gives colours and legend.
        code_length: bits.

    Raises:
        InputError: a column is missing, a method is unnamed, or there is no curve at this code length.
    """
    _require_columns(curves, ("method", "code_length", "kind", "point", "precision", "recall"), "curves")
    drawn = curves[(curves["kind"] == "radius") & (curves["code_length"] == code_length)]
    drawn = drawn[drawn["method"] != CLASSIFIER_BASELINE].dropna(subset=["precision", "recall"])
    if drawn.empty:
        known = ", ".join(str(length) for length in sorted(set(curves["code_length"])))
        raise InputError(f"no precision-recall curves by radius at {code_length} bits: choose one of {known or 'none'}")
    for method in drawn["method"].unique():
        method_name(method, display_names)
    styles = method_styles(display_names)
    figure = go.Figure()
    for method in display_names:
        own = drawn[drawn["method"] == method].sort_values("point")
        if not own.empty:
            figure.add_scatter(
                x=own["recall"].to_numpy(),
                y=own["precision"].to_numpy(),
                customdata=own["point"].to_numpy(),
                name=display_names[method],
                hovertemplate="radius %{customdata}: precision %{y:.4f}, recall %{x:.4f}",
                **line_and_markers(styles[method], marker_size=5),
            )
    figure.update_layout(
        template=report_template(),
        title_text=f"Precision and recall at {code_length} bits",
        height=_PLOT_HEIGHT + _LEGEND_HEIGHT_PER_CURVE * len(figure.data),
        legend_y=-0.16,
        meta={
            "how_to_read": "Each marker is a Hamming radius, from 0 on the left to the code length on the right, where "
            "the whole database is returned. The further up and to the right a curve stays, the better. Counts are "
            "summed over all queries before they are divided."
        },
    )
    figure.update_xaxes(title_text="Recall", range=[-0.01, 1.02])
    figure.update_yaxes(title_text="Precision", range=[0, 1.02])
    return figure


def _add_level(figure: go.Figure, name: str, level: float, code_lengths: list[int], dash: str) -> None:
    # A line of two points would be invisible on a grid of one code length; half a bit on either side shows there too.
    figure.add_scatter(
        x=[code_lengths[0] - 0.5, code_lengths[-1] + 0.5],
        y=[level, level],
        name=name,
        mode="lines",
        line={"color": REFERENCE_COLOUR, "dash": dash, "width": 1.8},
        hovertemplate="%{y:.4f}",
    )


def _require_columns(frame: pd.DataFrame, columns: Iterable[str], name: str) -> None:
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise InputError(f"{name} lacks the columns {', '.join(missing)}: write the frame with all its columns")
