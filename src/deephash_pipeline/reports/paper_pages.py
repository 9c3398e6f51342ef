"""The paper's tables as Markdown. Every page says on what was measured, and what stands beside it."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from deephash_pipeline.reports.cells import CellMetrics, cell_code_length, cell_metric, classifier_baseline_cell
from deephash_pipeline.reports.paper_tables import (
    BENCHMARKS,
    NOT_PRINTED,
    NOT_RUN,
    UNSEEN_COLUMNS,
    Results,
    cells_of_column,
    for_readers,
)
from deephash_pipeline.reports.published import CITED_HEADING, CITED_NOTE, MAIN_CODE_LENGTHS
from deephash_pipeline.reports.tables import citations

PAPER_SIZES = {
    "mnist": (10_000, 50_000),
    "cifar10": (10_000, 50_000),
    "kaggle_face": (7_178, 315_799),
    "sun397": (21_751, 87_003),
}
"""Queries and training images of each benchmark, as the paper gives them."""

PROTOCOL = (
    "The queries are the test images and the database is the training images, all of them ranked by Hamming distance; "
    "mAP is the expectation over all orders of images at equal distance. `paper`: the value that Mu & Liu print; "
    f'`difference`: measured minus printed. "{NOT_RUN}": not measured here, and never filled in from the paper. '
    f"{NOT_PRINTED}: the paper prints no value.\n"
)

SHOWN_RADII = (0, 1, 2, 4, 8, 16)

_MINUS = "\N{MINUS SIGN}"
_COMPARED = {"measured": "measured", "published": "paper", "difference": "difference"}


def compared_page(title: str, table: pd.DataFrame, results: Results) -> str:
    """Write a table of measured and published mAP, a section for each benchmark and feature.

    Args:
        title: heading of the page.
        table: of `paper_tables`, with the columns `benchmark`, `method`, `code_length`, `measured`, `published`,
            `difference`, and maybe `feature` and `cited`.
        results: metrics of the cells that were run.
    """
    shown = for_readers(table)
    code_lengths = sorted(set(table["code_length"]))
    cited = {name: citations(own) for name, own in table.groupby("benchmark")} if "cited" in table else {}
    parts = [PROTOCOL]
    if any(cited.values()):
        parts.append(f"`{CITED_HEADING}`: {CITED_NOTE}\n")
        code_lengths = list(MAIN_CODE_LENGTHS)
    for benchmark, name in BENCHMARKS.items():
        own = shown[shown["benchmark"] == name]
        if own.empty:
            continue
        ran = bool((own["measured"] != NOT_RUN).any())
        parts += [f"## {name}\n", _measured_on(benchmark, results.get(benchmark, ()), ran)]
        if "feature" not in own:
            parts.append(_wide(own, code_lengths, _COMPARED, cited.get(name, {})))
            continue
        for feature, half in own.groupby("feature", sort=False):
            parts += [f"### {feature}\n", _wide(half, code_lengths, _COMPARED, {})]
    return _page(title, parts)


def precision_recall_page(title: str, curves: pd.DataFrame, results: Results) -> str:
    """Write precision and recall within some radii, a section for each benchmark.

    Args:
        title: heading of the page.
        curves: of `paper_figures.precision_recall_table`, with text for readers.
        results: metrics of the cells that were run.
    """
    parts = [PROTOCOL, "The paper prints no numbers for this figure, so there is nothing to compare with.\n"]
    for benchmark, name in BENCHMARKS.items():
        own = curves[curves["benchmark"] == name]
        rows = []
        for method, of_method in own.groupby("method", sort=False):
            points = of_method.set_index("radius").to_dict(orient="index")
            cells = [points.get(radius) for radius in SHOWN_RADII]
            missing = NOT_RUN if of_method["radius"].isna().all() else "nothing found"
            rows.append([method, *(f"{cell['precision']} / {cell['recall']}" if cell else missing for cell in cells)])
        header = ["precision / recall within", *map(str, SHOWN_RADII)]
        ran = bool((own["precision"] != NOT_RUN).any())
        parts += [
            f"## {name}\n",
            _measured_on(benchmark, results.get(benchmark, ()), ran),
            _markdown_table(header, rows),
        ]
    return _page(title, parts)


def unseen_page(title: str, table: pd.DataFrame, results: Results, baseline: str) -> str:
    """Write CIFAR-10's mAP by three protocols.

    Args:
        title: heading of the page.
        table: of `paper_tables.unseen_table`.
        results: metrics of the cells that were run.
        baseline: display name of the 1-of-C code, which stands below the table.
    """
    headers = {"training_database": "training", "held_out_database": "held out", "unseen_classes": "unseen classes"}
    parts = [
        "Where the database is the training set, a code may score by remembering it. `training`: that protocol, the "
        "paper's; `held out`: the same queries search images of the same classes that no training has seen; `unseen "
        "classes`: the network and the hash functions learn from the other classes, and queries and database are of "
        f'classes that they have never seen. The paper has neither of the last two. "{NOT_RUN}": not measured here.\n'
    ]
    for column, what in (("held_out_database", "Held out"), ("unseen_classes", "Unseen classes")):
        shown = cells_of_column(results, column)
        if not shown:
            parts.append(f"- {what}: {NOT_RUN}.")
            continue
        cell, prefix = shown[0][0], UNSEEN_COLUMNS[column][2]
        parts.append(
            f"- {what}: {cell_metric(cell, 'queries'):,.0f} queries, database of "
            f"{cell_metric(cell, f'{prefix}database_size'):,.0f} images, chance "
            f"{cell_metric(cell, f'{prefix}chance_level'):.4f}."
        )
    on_grid = table["code_length"].isin(MAIN_CODE_LENGTHS) & (table["method"] != baseline)
    parts += ["", _wide(for_readers(table[on_grid]), MAIN_CODE_LENGTHS, headers, {})]
    for row in for_readers(table[table["method"] == baseline]).to_dict("records"):
        scores = ", ".join(f"{header} {row[column]}" for column, header in headers.items())
        parts.append(f"{baseline}, {row['code_length']} bits: {scores}.\n")
    return _page(title, parts)


def _measured_on(benchmark: str, cells: Sequence[CellMetrics], ran: bool) -> str:
    """Say on how many queries and images a benchmark was measured, and what the references score there."""
    queries, database = PAPER_SIZES[benchmark]
    paper = f"the paper has {queries:,} queries and a database of {database:,}"
    if not cells:
        return f"{'Sizes not recorded' if ran else NOT_RUN.capitalize()}; {paper}.\n"
    sizes = sorted({tuple(int(cell_metric(cell, name)) for name in ("queries", "database_size")) for cell in cells})
    sizes_text = "; ".join(f"{queries:,} queries, database of {database:,} images" for queries, database in sizes)
    chance = ", ".join(sorted({f"{cell_metric(cell, 'chance_level'):.4f}" for cell in cells}))
    text = f"{sizes_text}; {paper}. Chance: {chance}."
    baseline = classifier_baseline_cell(cells)
    if baseline is not None:
        score = cell_metric(baseline, "mean_average_precision")
        text += f" 1-of-C code of the classifier, {cell_code_length(baseline)} bits: {score:.4f}."
    return f"{text}\n"


def _wide(
    shown: pd.DataFrame, code_lengths: Sequence[int], headers: Mapping[str, str], cited: Mapping[str, str]
) -> str:
    """A row for each method, some columns for each code length, and what is cited in the last."""
    header = ["method", *(f"{length}: {name}" for length in code_lengths for name in headers.values())]
    cells = shown.set_index(["method", "code_length"])[list(headers)].to_dict(orient="index")
    rows = [
        [
            method,
            *(cells[method, length][column].replace("-", _MINUS) for length in code_lengths for column in headers),
        ]
        for method in dict.fromkeys(shown["method"])
    ]
    if cited:
        header.append(CITED_HEADING)
        for row in rows:
            row.append(cited.get(row[0], NOT_PRINTED))
    return _markdown_table(header, rows)


def _markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def _page(title: str, parts: Iterable[str]) -> str:
    return f"# {title}\n\n" + "\n".join(parts) + "\nWritten by `kedro run --pipelines=paper_tables`.\n"
