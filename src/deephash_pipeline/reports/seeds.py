"""Tables and a figure of several seeds: means, standard deviations, and which methods are worse than the best."""

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import TypeAlias

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import NDArray

from deephash_pipeline.protocols import require_protocol
from deephash_pipeline.reports.figures import by_group
from deephash_pipeline.reports.panels import add_to_panel, panels_beside_each_other
from deephash_pipeline.reports.style import line_and_markers, method_styles
from deephash_pipeline.significance import SignificanceParameters, compare_with_best

Scores: TypeAlias = Mapping[tuple[str, int], NDArray[np.float64]]
"""(method, code length) to every query's average precision with every seed, (seeds, queries)."""

_ABSENT = "\N{EN DASH}"


def seeds_table(
    scores: Scores, display_names: Mapping[str, str], parameters: SignificanceParameters, random_state: int
) -> pd.DataFrame:
    """Compare the methods at each code length with the best one there.

    Args:
        scores: average precisions.
        display_names: display name of each method key; its order is that of the rows.
        parameters: of the bootstrap.
        random_state: of the bootstrap.

    Returns:
        A row for each cell: method (display name), code_length, and what `AgainstBest` says of it.

    Example:
        >>> queries = np.linspace(0.2, 0.8, 50)
        >>> scores = {("itq", 12): queries[None] - 0.1, ("ksh", 12): np.stack([queries, queries - 0.02])}
        >>> seeds_table(scores, {"itq": "ITQ", "ksh": "KSH"}, SignificanceParameters(), 0)[["method", "mean", "tied"]]
          method  mean   tied
        0    ITQ  0.40  False
        1    KSH  0.49   True
    """
    rows = []
    for length in sorted({code_length for _, code_length in scores}):
        own = {method: scores[method, length] for method in display_names if (method, length) in scores}
        for method, standing in compare_with_best(own, parameters, random_state).items():
            rows.append({"method": display_names[method], "code_length": length, **asdict(standing)})
    return pd.DataFrame(rows)


def seeds_page(table: pd.DataFrame, benchmark: str, parameters: SignificanceParameters) -> str:
    """Write the comparison as Markdown: a table of methods by code lengths for each protocol.

    Args:
        table: of `seeds_table`, with the column ``protocol``.
        benchmark: name.
        parameters: that the table was made with.
    """
    parts = [
        f"# Several seeds on {benchmark}\n",
        "Tie-aware mAP, mean ± standard deviation over seeds; their number stands in brackets. Bold: the best mean at "
        "a code length, and what is tied with it, not worse by a paired bootstrap over the queries of the seed-"
        f"averaged difference ({parameters.resamples:,} resamples, Holm's correction over the methods, level "
        f"{parameters.level:g}). The deviation of one seed is unknown.\n",
    ]
    for protocol, own in table.groupby("protocol", sort=False):
        lengths = sorted(own["code_length"].unique())
        known = require_protocol(str(protocol))
        first = f" Of each ranking the first {known.k:,} images count." if known.k else ""
        parts.append(f"## Protocol {protocol}\n\nThe database is {known.described}.{first}\n")
        parts.append(f"| method | {' | '.join(f'{length} bits' for length in lengths)} |")
        parts.append(f"|---|{'---:|' * len(lengths)}")
        cells = own.set_index(["method", "code_length"])
        for method in own["method"].unique():
            texts = [
                _cell(cells.loc[(method, length)]) if (method, length) in cells.index else _ABSENT for length in lengths
            ]
            parts.append(f"| {method} | {' | '.join(texts)} |")
        parts.append("")
    parts.append("Written by `kedro run --pipelines=comparison`.\n")
    return "\n".join(parts)


def figure_seeds(
    table: pd.DataFrame, display_names: Mapping[str, str], groups: Mapping[str, Collection[str]]
) -> go.Figure:
    """Mean mAP against code length with error bars of one standard deviation over seeds, a panel for each group.

    Drawn is the last protocol: that of held-out images where there are such.

    Args:
        table: of `seeds_table`, with the column ``protocol``.
        display_names: display name of each method key; its order gives colours and legend.
        groups: heading of each group to its methods.
    """
    protocol = require_protocol(str(table["protocol"].iloc[-1]))
    drawn = table[table["protocol"] == protocol.name]
    there = set(drawn["method"])
    placed = by_group([method for method, name in display_names.items() if name in there], groups)
    figure = panels_beside_each_other([*placed], [len(methods) for methods in placed.values()])
    styles = method_styles(display_names)
    for panel, methods in enumerate(placed.values()):
        for method in methods:
            own = drawn[drawn["method"] == display_names[method]].sort_values("code_length")
            trace = go.Scatter(
                x=own["code_length"].to_numpy(),
                y=own["mean"].to_numpy(),
                error_y={"type": "data", "array": own["standard_deviation"].fillna(0).to_numpy(), "visible": True},
                customdata=own[["seeds", "standard_deviation"]].to_numpy(),
                name=display_names[method],
                hovertemplate="%{x} bits: %{y:.4f} ± %{customdata[1]:.4f}, %{customdata[0]} seeds",
                **line_and_markers(styles[method], marker_size=7),
            )
            add_to_panel(figure, panel, trace)
    figure.update_layout(
        title_text="Several seeds",
        meta=figure.layout.meta
        | {
            "how_to_read": f"Means over seeds; the database is {protocol.described}. Error bars are one standard "
            "deviation of the seeds; a method with one seed has none."
        },
    )
    figure.update_xaxes(title_text="Code length (bits)", tickvals=sorted(drawn["code_length"].unique()))
    figure.update_yaxes(title_text="Mean average precision", col=1)
    return figure


def _cell(row: "pd.Series[float]") -> str:
    mean = f"{row['mean']:.4f}"
    spread = "" if math.isnan(row["standard_deviation"]) else f" ± {row['standard_deviation']:.4f}"
    return f"{f'**{mean}**' if row['tied'] else mean}{spread} ({row['seeds']:.0f})"
