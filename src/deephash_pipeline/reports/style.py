"""One look for all figures: what a method is drawn with, and the Plotly template."""

from collections.abc import Mapping
from dataclasses import dataclass

import plotly.graph_objects as go

# Okabe and Ito's colour-blind-safe hues, the light ones darkened until each stands out from white and from near-black.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#c765a0", "#c78a00", "#3f9fd8")
# Hues are few, so each further round of methods differs in line and marker as well: no reader needs the hue.
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down")

REFERENCE_COLOUR = "#8a8f98"
GROUP_COLOURS = _COLOURS
"""Of groups of methods, in figures that do not tell their methods apart by colour."""

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


def line_and_markers(style: MethodStyle, marker_size: int) -> dict[str, object]:
    """Properties of a scatter trace that is a method's measured curve; the size is in pixels."""
    return {
        "mode": "lines+markers",
        "line": {"color": style.colour, "dash": style.dash, "width": 2.2},
        "marker": {"color": style.colour, "symbol": style.symbol, "size": marker_size},
    }


def code_length_dashes(code_lengths: list[int]) -> dict[int, str]:
    """Plotly line dash of each code length, for figures in which one method has a curve per code length."""
    return {code_length: _DASHES[rank % len(_DASHES)] for rank, code_length in enumerate(sorted(code_lengths))}


def report_template() -> go.layout.Template:
    """Plotly template of the report: quiet grid, system fonts, legend below, legible at a width of 900 pixels."""
    axis = {
        "gridcolor": "#e4e7eb",
        "linecolor": "#9aa1ab",
        "zeroline": False,
        "showline": True,
        "ticks": "outside",
        "tickcolor": "#9aa1ab",
        "ticklen": 4,
        "title": {"font": {"size": 14}, "standoff": 10},
        "automargin": True,
    }
    return go.layout.Template(
        layout={
            "font": {"family": _SANS_SERIF, "size": 13, "color": "#24292f"},
            "title": {"x": 0, "xref": "paper", "xanchor": "left", "font": {"size": 18}},
            "paper_bgcolor": "#ffffff",
            "plot_bgcolor": "#ffffff",
            "xaxis": axis,
            "yaxis": axis,
            "hovermode": "closest",
            "legend": {
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "yanchor": "top",
                "font": {"size": 13},
                "itemwidth": 44,
            },
            "margin": {"l": 60, "r": 20, "t": 60, "b": 50},
        }
    )
