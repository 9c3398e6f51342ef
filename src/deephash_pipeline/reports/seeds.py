"""Tables of several seeds: means, standard deviations, and which methods are worse than the best."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from deephash_pipeline.reports.cells import ABSENT
from deephash_pipeline.reports.paper.pages import markdown_table
from deephash_pipeline.retrieval.protocols import require_protocol
from deephash_pipeline.tuning.significance import SignificanceParameters, compare_with_best

Scores: TypeAlias = Mapping[tuple[str, int], Sequence[float]]
"""(method, code length) to the mAP of every seed."""


def seeds_table(scores: Scores, display_names: Mapping[str, str], parameters: SignificanceParameters) -> pd.DataFrame:
    """Compare the methods at each code length with the best one there.

    Args:
        scores: mAP of every seed.
        display_names: display name of each method key; its order is that of the rows.
        parameters: parameters of the test.

    Returns:
        A row for each cell: method (display name), code_length, mean, standard_deviation (n - 1; NaN of one seed),
        seeds, mean_of_each_seed (with spaces between), and what `AgainstBest` says of it.

    Example:
        >>> scores = {("itq", 12): [0.8, 0.81], ("ksh", 12): [0.9, 0.91], ("lsh", 12): [0.7]}
        >>> names = {"lsh": "LSH", "itq": "ITQ", "ksh": "KSH"}
        >>> seeds_table(scores, names, SignificanceParameters())[["method", "mean_of_each_seed", "verdict"]]
          method mean_of_each_seed verdict
        0    LSH               0.7    None
        1    ITQ          0.8 0.81   worse
        2    KSH          0.9 0.91    best
    """
    rows = [
        {
            "method": name,
            "code_length": length,
            "mean": np.mean(own),
            "standard_deviation": np.std(own, ddof=1) if len(own) > 1 else np.nan,
            "seeds": len(own),
            "mean_of_each_seed": " ".join(map(str, own)),
        }
        for length in sorted({code_length for _, code_length in scores})
        for method, name in display_names.items()
        if (own := scores.get((method, length))) is not None
    ]
    return with_verdicts(pd.DataFrame(rows), parameters)


def with_verdicts(table: pd.DataFrame, parameters: SignificanceParameters) -> pd.DataFrame:
    """Compare the methods of each environment, protocol and code length, by what the table holds of their seeds.

    Args:
        table: table with the columns mean, standard_deviation and seeds, and those that tell what is compared, if any.
        parameters: parameters of the test.

    Returns:
        The table with the columns of `AgainstBest`, replaced if they are there.

    Example:
        >>> table = pd.DataFrame({"mean": [0.9, 0.8], "standard_deviation": 0.01, "seeds": 3})
        >>> with_verdicts(table, SignificanceParameters())["verdict"].tolist()
        ['best', 'worse']
    """
    compared = [name for name in ("environment", "protocol", "code_length") if name in table]
    groups = [own for _, own in table.groupby(compared, sort=False)] if compared else [table]
    judged = []
    for own in groups:
        standing = compare_with_best(own["mean"], own["standard_deviation"], own["seeds"], parameters)
        judged.append(own.assign(**pd.DataFrame(standing, index=own.index, dtype=object)))
    return pd.concat(judged).astype({"difference": float, "p_value": float}).loc[table.index]


def seeds_page(table: pd.DataFrame, benchmark: str, parameters: SignificanceParameters) -> str:
    """Write the comparison as Markdown: a table of methods by code lengths for each protocol.

    Args:
        table: table of `seeds_table`, with the column ``protocol``.
        benchmark: name of the benchmark.
        parameters: parameters that the table was made with.
    """
    parts = [
        f"# Several seeds on {benchmark}\n",
        "Tie-aware mAP, mean ± standard deviation over seeds; their number stands in brackets. Bold: of methods with "
        "several seeds the best mean at a code length, and what is tied with it: not worse by Tukey's studentised "
        f"range over seeds, each pair with its own variances (level {parameters.level:g}). One seed has no verdict.\n",
    ]
    for protocol, own in table.groupby("protocol", sort=False):
        lengths = sorted(own["code_length"].unique())
        known = require_protocol(str(protocol))
        first = f" Of each ranking the first {known.k:,} images count." if known.k else ""
        parts.append(f"## Protocol {protocol}\n\nThe database is {known.described}.{first}\n")
        cells = own.set_index(["method", "code_length"])
        texts = {key: f"{cell_text(row)} ({row['seeds']:.0f})" for key, row in cells.iterrows()}
        rows = [[method, *(texts.get((method, at), ABSENT) for at in lengths)] for method in own["method"].unique()]
        parts.append(markdown_table(["method", *(f"{length} bits" for length in lengths)], rows))
    parts.append("Written by `kedro run --pipelines=comparison`.\n")
    return "\n".join(parts)


def cell_text(row: "pd.Series[Any]") -> str:
    """Write mean and deviation of a row of `with_verdicts`, bold if it is the best or tied with it.

    >>> cell_text(pd.Series({"mean": 0.5, "standard_deviation": 0.01, "verdict": "tied"}))
    '**0.5000** ± 0.0100'
    """
    mean = f"{row['mean']:.4f}"
    spread = "" if math.isnan(row["standard_deviation"]) else f" ± {row['standard_deviation']:.4f}"
    return f"{f'**{mean}**' if row['verdict'] in ('best', 'tied') else mean}{spread}"
