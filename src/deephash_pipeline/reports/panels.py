"""Small multiples: panels side by side, each with a legend of its own; and one look for all figures."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

# Okabe and Ito's colour-blind-safe hues, the light ones darkened until each stands out from white and from near-black.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#c765a0", "#c78a00", "#3f9fd8")
# Hues are few, so each further round of methods differs in line and marker as well: no reader needs the hue.
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down")

REFERENCE_COLOUR = "#8a8f98"

_SANS_SERIF = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True)
class MethodStyle:
    """What a method is drawn with in every figure: CSS colour, Plotly line dash and Plotly marker symbol."""

    colour: str
    dash: str
    symbol: str


def method_styles(display_names: Mapping[str, str]) -> dict[str, MethodStyle]:
    """Style of each method key.

    It depends on nothing but the position among the display names: figures that show different methods of the same
    mapping still agree.

    Example:
        >>> method_styles({"lsh": "LSH", "itq": "ITQ"})["itq"]
        MethodStyle(colour='#d55e00', dash='solid', symbol='circle')
    """
    return {
        method: MethodStyle(
            colour=_COLOURS[position % len(_COLOURS)],
            dash=_DASHES[position // len(_COLOURS) % len(_DASHES)],
            symbol=_SYMBOLS[position // len(_COLOURS) % len(_SYMBOLS)],
        )
        for position, method in enumerate(display_names)
    }


_PANEL_HEIGHT = 320
_ABOVE = 80
_AXIS = 70
_LEGEND_ROW = 19
_SPACE_BETWEEN = 0.08


def curves_in_panels(
    curves: pd.DataFrame,
    display_names: Mapping[str, str],
    groups: Mapping[str, Collection[str]],
    marker_size: int,
    **columns: str | list[str],
) -> go.Figure:
    """Draw a curve for each method, a panel for each group of methods.

    Args:
        curves: a row for each point, in the order in which points are joined; the column `method` has keys.
        display_names: display name of each method key; its order gives colours and legend.
        groups: heading of each group to its methods; other methods share a last panel.
        marker_size: size of markers in pixels.
        **columns: columns ``x``, ``y`` and ``customdata``.
    """
    there = set(curves["method"])
    methods = by_group([method for method in display_names if method in there], groups)
    figure = make_subplots(cols=len(methods), subplot_titles=[*methods], horizontal_spacing=_SPACE_BETWEEN)
    styles = method_styles(display_names)
    for panel, own in enumerate(methods.values()):
        place = {"x": figure.get_subplot(1, panel + 1).xaxis.domain[0], "y": -_AXIS / _PANEL_HEIGHT}
        figure.update_layout(
            {_legend(panel): {"orientation": "v", "xanchor": "left", "yanchor": "top", "itemwidth": 44, **place}}
        )
        for method in own:
            points = curves[curves["method"] == method]
            values = {name: points[column].to_numpy() for name, column in columns.items()}
            style = styles[method]
            look = {
                "mode": "lines+markers",
                "line": {"color": style.colour, "dash": style.dash, "width": 2.2},
                "marker": {"color": style.colour, "symbol": style.symbol, "size": marker_size},
            }
            add_to_panel(figure, panel, go.Scatter(name=display_names[method], **values, **look))
    below = _AXIS + _LEGEND_ROW * max(map(len, methods.values()), default=0)
    axis = {"showline": True, "zeroline": False, "ticks": "outside", "automargin": True}
    figure.update_annotations(font_size=14).update_xaxes(axis).update_yaxes(axis)
    return figure.update_layout(
        template="plotly_white",
        font={"family": _SANS_SERIF, "size": 13},
        hovermode="closest",
        height=_ABOVE + _PANEL_HEIGHT + below,
        margin={"l": 60, "r": 20, "t": _ABOVE, "b": below},
        meta={"panel_height": _PANEL_HEIGHT},
    )


def add_to_panel(figure: go.Figure, panel: int, trace: go.Scatter) -> None:
    """Add a curve and its name to a panel, counted from 0."""
    figure.add_trace(trace.update(legend=_legend(panel)), row=1, col=panel + 1)


def add_row_to_legends(figure: go.Figure) -> None:
    """Make room for one more name in each panel's legend."""
    figure.update_layout(height=figure.layout.height + _LEGEND_ROW, margin_b=figure.layout.margin.b + _LEGEND_ROW)


def by_group(methods: Iterable[str], groups: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    """Methods of each group that has any, in the given order; those of no group last."""
    found = list(dict.fromkeys(methods))
    placed = {heading: [method for method in found if method in own] for heading, own in groups.items()}
    grouped = set().union(*placed.values())
    placed["Other methods" if grouped else "All methods"] = [method for method in found if method not in grouped]
    return {heading: own for heading, own in placed.items() if own}


def told(figure: go.Figure, title: str, how_to_read: str) -> go.Figure:
    """Give a figure its title and the line for its reader."""
    meta = figure.layout.meta or {}
    return figure.update_layout(title_text=title, meta={**meta, "how_to_read": how_to_read})


def _legend(panel: int) -> str:
    return f"legend{panel + 1}" if panel else "legend"
