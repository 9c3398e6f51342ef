"""Small multiples: panels side by side, each with a legend of its own; the page stacks them where it is narrow."""

from collections.abc import Sequence

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from deephash_pipeline.reports.style import report_template

_PANEL_HEIGHT = 320
_ABOVE = 80
_AXIS = 70
_LEGEND_ROW = 19
_SPACE_BETWEEN = 0.08


def panels_beside_each_other(titles: Sequence[str], entries: Sequence[int]) -> go.Figure:
    """Make empty panels in one row.

    Args:
        titles: of the panels.
        entries: how many names the legend of each will have.
    """
    figure = make_subplots(cols=len(titles), subplot_titles=titles, horizontal_spacing=_SPACE_BETWEEN)
    below = _AXIS + _LEGEND_ROW * max(entries)
    for number in range(len(titles)):
        place = {"x": figure.get_subplot(1, number + 1).xaxis.domain[0], "y": -_AXIS / _PANEL_HEIGHT}
        figure.update_layout({_legend(number): {"orientation": "v", "xanchor": "left", "yanchor": "top", **place}})
    return figure.update_annotations(font_size=14).update_layout(
        template=report_template(),
        height=_ABOVE + _PANEL_HEIGHT + below,
        margin={"t": _ABOVE, "b": below},
        meta={"panel_height": _PANEL_HEIGHT},
    )


def add_to_panel(figure: go.Figure, panel: int, trace: go.Scatter) -> None:
    """Add a curve and its name to a panel, counted from 0."""
    figure.add_trace(trace.update(legend=_legend(panel)), row=1, col=panel + 1)


def _legend(panel: int) -> str:
    return f"legend{panel + 1}" if panel else "legend"
