"""The course of the training stages: one panel per stage and quantity."""

from collections.abc import Collection, Mapping
from typing import cast

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.reports.panels import (
    REFERENCE_COLOUR,
    MethodStyle,
    code_length_dashes,
    method_styles,
    report_template,
    told,
)

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
_OF_SHARED_TRUNK = MethodStyle(REFERENCE_COLOUR, "solid", "circle")


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
        InputError: all metrics are missing.
    """
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
    # The shared trunk first, then by order of the display names.
    order = {method: place for place, method in enumerate(display_names)}
    lengths = history["code_length"].astype("Float64").fillna(0).astype(int)
    methods = history["method"].where(lengths > 0, _SHARED_TRUNK)
    history = history.assign(method=methods, code_length=lengths, place=methods.map(order).fillna(-1))
    history = history.sort_values(["place", "code_length", "epoch"])
    dashes = code_length_dashes([length for length in lengths.unique() if length])
    styles = method_styles(display_names)
    named = set[str]()
    for position, (stage, quantity) in enumerate(panels):
        row, column = (part + 1 for part in divmod(position, _COLUMNS_OF_PANELS))
        values = history[history["stage"] == stage].dropna(subset=[quantity])
        for curve, own in values.groupby(["method", "code_length"], sort=False):
            method, bits = cast("tuple[str, int]", curve)
            name, style = (display_names[method], styles[method]) if bits else (_SHARED_TRUNK, _OF_SHARED_TRUNK)
            figure.add_scatter(
                x=own["epoch"].to_numpy(),
                y=own[quantity].to_numpy(dtype="float64"),
                name=name,
                legendgroup=name,
                showlegend=name not in named,
                visible="legendonly" if method in hidden else True,
                mode="lines+markers",
                line={"color": style.colour, "dash": dashes.get(bits, "solid"), "width": 2},
                marker={"size": 6, "symbol": style.symbol},
                hovertemplate=f"{f'{bits} bits, ' if bits else ''}epoch %{{x}}: %{{y:.4g}}",
                row=row,
                col=column,
            )
            named.add(name)
        shown = values.loc[~values["method"].isin(hidden), quantity]
        figure.update_yaxes(**_value_axis(quantity, values[quantity] if shown.empty else shown), row=row, col=column)
        few_epochs = values["epoch"].max() <= _EVERY_EPOCH_TICKED
        figure.update_xaxes(title_text="Epoch", dtick=1 if few_epochs else None, row=row, col=column)
    figure.update_annotations(font_size=14)
    figure.update_layout(
        template=report_template(),
        height=panels_height + _HEADER_AND_LEGEND,
        legend_y=-75 / panels_height,
        margin_t=90,
        meta={"panel_height": _PANEL_HEIGHT},
    )
    line_styles = ", ".join(f"{dash} {length} bits" for length, dash in dashes.items())
    return told(
        figure,
        "Training curves",
        "The true loss is what fine-tuning is meant to lower: 1 is the value of independent codes. A standard "
        "deviation of u that runs away, or a saturated share near 1, means that gradients vanish. "
        f"Line styles are code lengths: {line_styles}. Click a name to show or hide a method.",
    )


def _value_axis(quantity: str, values: "pd.Series[float]") -> dict[str, object]:
    # Against the median, not the minimum: a schedule that ends near zero for an epoch or two needs no decades.
    typical = float(values.median())
    if quantity in _MAY_SPAN_DECADES and values.min() > 0 and values.max() > _LOGARITHMIC_FROM_RATIO * typical:
        return {"type": "log", "dtick": 1, "exponentformat": "power"}
    # Not "500µ", as Plotly writes half a thousandth by itself.
    return {"rangemode": "tozero" if quantity in _STARTS_AT_ZERO else "normal", "exponentformat": "power"}
