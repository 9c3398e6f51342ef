"""Pictures of a search: how far each method has come after so many trials, and which rates it likes."""

from collections.abc import Collection, Mapping

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.reports.figures import by_group
from deephash_pipeline.reports.panels import add_to_panel, panels_beside_each_other
from deephash_pipeline.reports.style import line_and_markers, method_styles

LEARNING_RATE = "training.learning_rate"


def figure_tuning_progress(
    trials: pd.DataFrame, display_names: Mapping[str, str], groups: Mapping[str, Collection[str]], score: str
) -> go.Figure:
    """Best score of the trials so far against their number, one curve per method.

    Args:
        trials: a row each, with the columns method, trial, state and `score`.
        display_names: display name of each method key; its order gives colours and legend.
        groups: heading of each group to its methods, a panel each.
        score: column of the scores.

    Raises:
        InputError: there are no trials.
    """
    figure, placed = _panels(trials, display_names, groups)
    for panel, method in placed:
        own = trials[trials["method"] == method]
        best = own[score].where(own["state"] == "complete").cummax()
        trace = go.Scatter(
            x=own["trial"].to_numpy(),
            y=best.to_numpy(dtype="float64"),
            name=display_names[method],
            hovertemplate="after %{x} trials: %{y:.4f}",
            **line_and_markers(method_styles(display_names)[method], marker_size=5),
        )
        trace.line.shape = "hv"
        add_to_panel(figure, panel, trace)
    figure.update_layout(
        title_text="Best trial so far",
        meta=figure.layout.meta
        | {
            "how_to_read": "The best score of a method's trials that came to their end, after so many trials. Every "
            "method has the same number; a curve that still rises at its end would gain from more."
        },
    )
    figure.update_xaxes(title_text="Trials")
    figure.update_yaxes(title_text="Held-out mAP", col=1)
    return figure


def figure_tuning_rates(
    trials: pd.DataFrame, display_names: Mapping[str, str], groups: Mapping[str, Collection[str]], score: str
) -> go.Figure:
    """Score of every trial against its learning rate; trials that were stopped early are hollow.

    Args:
        trials: as for `figure_tuning_progress`, with the column ``training.learning_rate``.
        display_names: this and what follows as there.
        groups: of methods.
        score: column of the scores.

    Raises:
        InputError: there are no trials.
    """
    figure, placed = _panels(trials, display_names, groups)
    for panel, method in placed:
        own = trials[(trials["method"] == method) & trials[score].notna()]
        style = method_styles(display_names)[method]
        symbols = np.where(own["state"] == "complete", style.symbol, f"{style.symbol}-open")
        trace = go.Scatter(
            x=own[LEARNING_RATE].to_numpy(),
            y=own[score].to_numpy(dtype="float64"),
            customdata=own[["trial", "state"]].to_numpy(),
            name=display_names[method],
            mode="markers",
            marker={"color": style.colour, "symbol": symbols.tolist(), "size": 8},
            hovertemplate="trial %{customdata[0]}, %{customdata[1]}: %{y:.4f} at %{x:.3g}",
        )
        add_to_panel(figure, panel, trace)
    figure.update_layout(
        title_text="Trials by learning rate",
        meta=figure.layout.meta
        | {"how_to_read": "Each marker is a trial; a hollow one was stopped early, at the score it had then."},
    )
    figure.update_xaxes(title_text="Learning rate", type="log")
    figure.update_yaxes(title_text="Held-out mAP", col=1)
    return figure


def _panels(
    trials: pd.DataFrame, display_names: Mapping[str, str], groups: Mapping[str, Collection[str]]
) -> tuple[go.Figure, list[tuple[int, str]]]:
    """Make a panel for each group, and give each method that was searched with the number of its panel."""
    if trials.empty:
        raise InputError("there are no trials to draw: search the parameters of a method first")
    there = set(trials["method"])
    grouped = by_group([method for method in display_names if method in there], groups)
    figure = panels_beside_each_other([*grouped], [len(methods) for methods in grouped.values()])
    return figure, [(panel, method) for panel, methods in enumerate(grouped.values()) for method in methods]
