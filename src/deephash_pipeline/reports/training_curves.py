"""The course of the training stages: one panel per stage and quantity."""

from collections.abc import Collection, Mapping
from typing import TypeAlias

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.reports.cells import method_name
from deephash_pipeline.reports.style import REFERENCE_COLOUR, code_length_dashes, method_styles, report_template

_STAGES = {
    "softmax_pre_training": "Softmax pre-training",
    "hash_layer_initialisation": "Hash-layer initialisation",
    "fine_tuning": "Fine-tuning",
}
_QUANTITIES = {
    "loss": "loss",
    "true_loss": "true loss",
    "u_standard_deviation": "standard deviation of u",
    "saturated_share": "saturated share",
    "validation_accuracy": "validation accuracy",
    "learning_rate": "learning rate",
}
_STARTS_AT_ZERO = ("saturated_share", "learning_rate")
_MAY_SPAN_DECADES = ("loss", "learning_rate")
_LOGARITHMIC_FROM_RATIO = 30.0

_EVERY_EPOCH_TICKED = 10

_COLUMNS_OF_PANELS = 2
_PANEL_HEIGHT = 270
_SPACE_BETWEEN_PANELS = 85
_HEADER_AND_LEGEND = 230

_SHARED_TRUNK = "Shared trunk"

Curve: TypeAlias = tuple[str | None, int | None]


def figure_training_curves(
    history: pd.DataFrame, display_names: Mapping[str, str], hidden: Collection[str] = ()
) -> go.Figure:
    """Loss, learning rate and health of the network by epoch, for the three stages of the paper's Algorithm 1.

    Colour is the method, line style the code length; the trunk that all methods share is grey. Only quantities that
    were recorded get a panel. A panel of losses or learning rates is logarithmic when its largest value is more than
    30 times the median of what is shown at first.

    Args:
        history: frame with columns `method`, `code_length` (missing for the shared trunk), `stage`
            ("softmax_pre_training", "hash_layer_initialisation" or "fine_tuning"), `epoch`, and any of `loss`,
            `true_loss`, `u_standard_deviation`, `saturated_share`, `validation_accuracy`, `learning_rate`.
        display_names: display name of each method key; its order gives colours and legend.
        hidden: methods whose curves stay away until their name is clicked, because their losses have other units.

    Raises:
        InputError: a column or all metrics are missing, a stage is unknown, or a method is unnamed.
    """
    _check(history)
    panels = [
        (stage, quantity)
        for stage in _STAGES
        for quantity in _QUANTITIES
        if quantity in history and history.loc[history["stage"] == stage, quantity].notna().any()
    ]
    if not panels:
        raise InputError("the training history has no metrics: train for at least one epoch")
    rows = -(-len(panels) // _COLUMNS_OF_PANELS)
    panels_height = rows * _PANEL_HEIGHT + (rows - 1) * _SPACE_BETWEEN_PANELS
    figure = make_subplots(
        rows=rows,
        cols=_COLUMNS_OF_PANELS,
        subplot_titles=[f"{_STAGES[stage]}: {_QUANTITIES[quantity]}" for stage, quantity in panels],
        vertical_spacing=_SPACE_BETWEEN_PANELS / panels_height,
        horizontal_spacing=0.11,
    )
    curves = _curves(history, display_names)
    looks = _looks(curves, display_names)
    named: set[str | None] = set()
    for position, (stage, quantity) in enumerate(panels):
        row, column = (part + 1 for part in divmod(position, _COLUMNS_OF_PANELS))
        values = history[history["stage"] == stage].dropna(subset=[quantity])
        for curve in curves:
            own = values[_belongs(values, curve)].sort_values("epoch")
            if own.empty:
                continue
            method, length = curve
            name = _SHARED_TRUNK if method is None else display_names[method]
            figure.add_scatter(
                x=own["epoch"].to_numpy(),
                y=own[quantity].to_numpy(dtype="float64"),
                name=name,
                legendgroup=name,
                showlegend=method not in named,
                visible="legendonly" if method in hidden else True,
                mode="lines+markers",
                marker_size=6,
                hovertemplate=f"{f'{length} bits, ' if length else ''}epoch %{{x}}: %{{y:.4g}}",
                row=row,
                col=column,
                **looks[curve],
            )
            named.add(method)
        shown = values.loc[~values["method"].isin(hidden), quantity]
        figure.update_yaxes(**_value_axis(quantity, values[quantity] if shown.empty else shown), row=row, col=column)
        few_epochs = values["epoch"].max() <= _EVERY_EPOCH_TICKED
        figure.update_xaxes(title_text="Epoch", dtick=1 if few_epochs else None, row=row, col=column)
    figure.update_annotations(font_size=14)
    figure.update_layout(
        template=report_template(),
        title_text="Training curves",
        height=panels_height + _HEADER_AND_LEGEND,
        legend_y=-75 / panels_height,
        margin_t=90,
        meta={
            "panel_height": _PANEL_HEIGHT,
            "how_to_read": "The true loss is what fine-tuning is meant to lower: 1 is the value of independent codes. "
            "A standard deviation of u that runs away, or a saturated share near 1, means that gradients vanish. "
            f"Line styles are code lengths: {_line_styles(curves)}. Click a name to show or hide a method.",
        },
    )
    return figure


def _check(history: pd.DataFrame) -> None:
    missing = [column for column in ("method", "code_length", "stage", "epoch") if column not in history.columns]
    if missing:
        raise InputError(f"training history lacks the columns {', '.join(missing)}: write the frame with all of them")
    unknown = sorted(set(history["stage"]) - set(_STAGES))
    if unknown:
        raise InputError(f"training history has the unknown stage {unknown[0]!r}: use one of {', '.join(_STAGES)}")


def _curves(history: pd.DataFrame, display_names: Mapping[str, str]) -> list[Curve]:
    """Method and code length of each curve, the shared trunk first, then by order of the display names."""
    trunk: list[Curve] = [(None, None)] if history["code_length"].isna().any() else []
    cells = history.dropna(subset=["code_length"])
    pairs = {(str(method), int(length)) for method, length in zip(cells["method"], cells["code_length"], strict=True)}
    for method, _ in pairs:
        method_name(method, display_names)
    order = {method: position for position, method in enumerate(display_names)}
    return [*trunk, *sorted(pairs, key=lambda pair: (order[pair[0]], pair[1]))]


def _dashes(curves: list[Curve]) -> dict[int, str]:
    return code_length_dashes(sorted({length for _, length in curves if length is not None}))


def _line_styles(curves: list[Curve]) -> str:
    return ", ".join(f"{dash} {length} bits" for length, dash in _dashes(curves).items())


def _looks(curves: list[Curve], display_names: Mapping[str, str]) -> dict[Curve, dict[str, object]]:
    styles = method_styles(display_names)
    dashes = _dashes(curves)
    looks: dict[Curve, dict[str, object]] = {}
    for method, length in curves:
        colour = REFERENCE_COLOUR if method is None else styles[method].colour
        symbol = "circle" if method is None else styles[method].symbol
        dash = "solid" if length is None else dashes[length]
        looks[method, length] = {"line": {"color": colour, "dash": dash, "width": 2}, "marker_symbol": symbol}
    return looks


def _belongs(history: pd.DataFrame, curve: Curve) -> "pd.Series[bool]":
    method, length = curve
    if length is None:
        return history["code_length"].isna()
    return (history["method"] == method) & (history["code_length"] == length).fillna(False).astype(bool)


def _value_axis(quantity: str, values: "pd.Series[float]") -> dict[str, object]:
    # Against the median, not the minimum: a schedule that ends near zero for an epoch or two needs no decades.
    typical = float(values.median())
    if quantity in _MAY_SPAN_DECADES and values.min() > 0 and values.max() > _LOGARITHMIC_FROM_RATIO * typical:
        return {"type": "log", "dtick": 1, "exponentformat": "power"}
    # Not "500µ", as Plotly writes half a thousandth by itself.
    return {"rangemode": "tozero" if quantity in _STARTS_AT_ZERO else "normal", "exponentformat": "power"}
