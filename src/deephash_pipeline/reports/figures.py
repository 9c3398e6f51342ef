"""The paper's figures, as Plotly figures in one style.

Every figure carries a line for its reader in `layout.meta["how_to_read"]`, so that the line stays with the figure
wherever it is stored.
"""

from collections.abc import Collection, Iterable, Mapping

import pandas as pd
import plotly.graph_objects as go

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.reports.cells import (
    CLASSIFIER_METHOD,
    CellMetrics,
    cell_code_length,
    cell_metric,
    classifier_baseline_cell,
    grid_cells,
    shared_chance_level,
    shared_protocol,
)
from deephash_pipeline.reports.panels import (
    REFERENCE_COLOUR,
    add_row_to_legends,
    add_to_panel,
    by_group,
    curves_in_panels,
    told,
)

_TIE_BOUNDS = ("mean_average_precision_pessimistic", "mean_average_precision_optimistic")


def figure_map_by_code_length(
    metrics: Iterable[CellMetrics], display_names: Mapping[str, str], groups: Mapping[str, Collection[str]]
) -> go.Figure:
    """The metric of the cells' protocol against code length, one curve per method (the paper's figure of mAP scores).

    Each group of methods has a panel, whose axis starts where its data does. Of one code length there are points.

    Args:
        metrics: metrics of the cells, in any order.
        display_names: display name of each method key; its order gives colours and legend.
        groups: heading of each group to its methods; other methods share a last panel.

    Raises:
        InputError: no cells, a repeated cell, an unnamed method, or cells of different protocols or databases.
    """
    given = list(metrics)
    cells = grid_cells(given, display_names)
    protocol = shared_protocol(given)
    score, name, chance = protocol.metric, "Mean average precision", ""
    bounds: tuple[str, ...] = ()
    if protocol.k is None:
        bounds, chance = _TIE_BOUNDS, f"; chance (all codes equal) is {shared_chance_level(given):.4f}"
        best = "all images of the query's class precede all others"
    else:
        # Bounds and chance level are those of the whole database.
        name += f" of the first {protocol.k:,}"
        best = f"the first {protocol.k:,} are of the query's class, as far as there are so many"
    lengths = sorted({cell_code_length(cell) for cell in cells})
    figure = curves_in_panels(
        pd.DataFrame(
            {
                "method": cell["method"],
                "code_length": cell_code_length(cell),
                **{metric: cell_metric(cell, metric) for metric in (score, *bounds)},
            }
            for cell in cells
        ),
        display_names,
        groups,
        marker_size=8,
        x="code_length",
        y=score,
        customdata=[*bounds],
    )
    of_ties = "<br>by order of ties: %{customdata[0]:.4f} to %{customdata[1]:.4f}" if bounds else ""
    figure.update_traces(hovertemplate=f"%{{x}} bits: %{{y:.4f}}{of_ties}")
    baseline, reference = classifier_baseline_cell(given), ""
    if baseline is not None:
        reference = "Grey: the classifier's own 1-of-C code, which does not depend on the code length. "
        add_row_to_legends(figure)
        for panel, methods in enumerate(by_group([str(cell["method"]) for cell in cells], groups).values()):
            ends = [cell_code_length(cell) for cell in cells if cell["method"] in methods]
            level = go.Scatter(
                x=[min(ends), max(ends)],
                y=[cell_metric(baseline, score)] * 2,
                name=f"{display_names[CLASSIFIER_METHOD]} ({cell_code_length(baseline)} bits)",
                mode="lines+markers",
                line={"color": REFERENCE_COLOUR, "dash": "longdash", "width": 1.8},
                hovertemplate="%{y:.4f}",
            )
            add_to_panel(figure, panel, level)
    figure.update_xaxes(title_text="Code length (bits)", tickvals=lengths)
    figure.update_yaxes(title_text=name, col=1)
    return told(
        figure,
        f"{name} by code length",
        f"Higher is better: 1 means that {best}. The axis of each panel starts where its data does{chance}. {reference}"
        "Point at a curve or a name to see it alone.",
    )


def figure_precision_recall(
    curves: pd.DataFrame, display_names: Mapping[str, str], groups: Mapping[str, Collection[str]], code_length: int = 32
) -> go.Figure:
    """Precision against recall as the Hamming radius grows, at one code length (the paper's figure at 32 bits).

    Both are micro-averages: counts are summed over the queries before they are divided. The 1-of-C code is not drawn:
    its code length is not the figure's.

    Args:
        curves: frame with columns `method`, `code_length`, `kind` ("radius" or "rank"; only "radius" is drawn),
            `point` (the radius), `precision` and `recall`. Points without precision (empty balls) are left out.
        display_names: display name of each method key; its order gives colours and legend.
        groups: heading of each group to its methods; other methods share a last panel.
        code_length: bits.

    Raises:
        InputError: a method is unnamed, or there is no curve at this code length.
    """
    drawn = curves[(curves["kind"] == "radius") & (curves["code_length"] == code_length)]
    drawn = drawn[drawn["method"] != CLASSIFIER_METHOD].dropna(subset=["precision", "recall"])
    if drawn.empty:
        known = ", ".join(str(length) for length in sorted(set(curves["code_length"])))
        raise InputError(f"no precision-recall curves by radius at {code_length} bits: choose one of {known or 'none'}")
    curves_by_radius = drawn.sort_values("point")
    figure = curves_in_panels(
        curves_by_radius, display_names, groups, marker_size=5, x="recall", y="precision", customdata="point"
    )
    figure.update_traces(hovertemplate="radius %{customdata}: precision %{y:.4f}, recall %{x:.4f}")
    figure.update_xaxes(title_text="Recall", range=[-0.01, 1.02])
    figure.update_yaxes(range=[0, 1.02])
    figure.update_yaxes(title_text="Precision", col=1)
    return told(
        figure,
        f"Precision and recall at {code_length} bits",
        "Each marker is a Hamming radius, from 0 on the left to the code length on the right, where the whole database "
        "is returned. The further up and to the right a curve stays, the better. Counts are summed over all queries "
        "before they are divided. Point at a curve or a name to see it alone.",
    )
