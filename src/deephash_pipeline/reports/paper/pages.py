"""The paper's tables as Markdown. Every page says on what was measured, and what stands beside it."""

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from deephash_pipeline.reports.cells import (
    ABSENT,
    CellMetrics,
    cell_code_length,
    cell_metric,
    cell_protocol,
    classifier_baseline_cell,
)
from deephash_pipeline.reports.paper.published import CITED_HEADING, CITED_NOTE, citations
from deephash_pipeline.reports.paper.tables import BENCHMARKS, NOT_RUN, BenchmarkResults, for_readers

PAPER_SIZES = {
    "mnist": (10_000, 50_000),
    "cifar10": (10_000, 50_000),
    "kaggle_face": (7_178, 315_799),
    "sun397": (21_751, 87_003),
}
"""Queries and training images of each benchmark, as the paper gives them."""

PROTOCOL = (
    "Test images search the training images, as in the paper; mAP is [tie-aware](../../evaluation.md). In brackets: "
    f'the value that Mu & Liu print. "{NOT_RUN}": not measured here. The CSV has every value. '
    "Rows may mix precisions: see [CIFAR10](../cifar10.md), [Kaggle-Face](../kaggle_face.md#deep-rivals).\n"
)


def compared_page(title: str, table: pd.DataFrame, results: BenchmarkResults, display_names: Mapping[str, str]) -> str:
    """Write a table of measured and published mAP, a section for each benchmark and feature.

    Args:
        title: heading of the page.
        table: table of `paper_tables`, with the columns `benchmark`, `method`, `code_length`, `measured`, `published`,
            and maybe `feature` and `cited`.
        results: metrics of the cells that were run.
        display_names: display name of each method key.
    """
    shown = for_readers(table)
    cited = {benchmark: citations(benchmark, display_names) for benchmark in BENCHMARKS if "cited" in table}
    parts = [PROTOCOL]
    # Without those that only a cited method has.
    code_lengths = sorted(set.intersection(*(set(own["code_length"]) for _, own in table.groupby("method"))))
    if any(cited.values()):
        parts.append(f"{CITED_NOTE}\n")
    for benchmark, name in BENCHMARKS.items():
        own = shown[shown["benchmark"] == name]
        if own.empty:
            continue
        ran = bool((own["measured"] != NOT_RUN).any())
        parts += [f"## {name}\n", _measured_on(benchmark, results.get(benchmark, ()), ran)]
        if not ran:
            continue
        in_brackets = [f" ({printed})" if printed != ABSENT else "" for printed in own["published"]]
        own = own.assign(mAP=own["measured"] + in_brackets)
        if "feature" not in own:
            parts.append(_wide(own, code_lengths, cited.get(benchmark, {})))
            continue
        for feature, half in own.groupby("feature", sort=False):
            parts += [f"### {feature}\n", _wide(half, code_lengths, {})]
    return f"# {title}\n\n" + "\n".join(parts) + "\nWritten by `kedro run --pipelines=paper_tables`.\n"


def _measured_on(benchmark: str, cells: Sequence[CellMetrics], ran: bool) -> str:
    """Say on how many queries and images a benchmark was measured, and what the references score there."""
    queries, database = PAPER_SIZES[benchmark]
    paper = f"the paper has {queries:,} queries and a database of {database:,}"
    cells = [cell for cell in cells if cell_protocol(cell).name == "paper"]
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


def _wide(shown: pd.DataFrame, code_lengths: Sequence[int], cited: Mapping[str, str]) -> str:
    """A row for each method that was run, a column for each code length, and what is cited below."""
    cells = shown.set_index(["method", "code_length"])["mAP"].to_dict()
    rows = [[method, *(cells[method, length] for length in code_lengths)] for method in dict.fromkeys(shown["method"])]
    missing = [row[0] for row in rows if all(cell.startswith(NOT_RUN) for cell in row[1:])]
    parts = [markdown_table(["method", *code_lengths], [row for row in rows if row[0] not in missing])]
    if missing:
        parts.append(f"{NOT_RUN.capitalize()}: {', '.join(missing)}.\n")
    if cited:
        parts.append(f"{CITED_HEADING}: {'; '.join(f'{method} {text}' for method, text in cited.items())}.\n")
    return "\n".join(parts)


def markdown_table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Write a table as Markdown."""
    first, *lines = (f"| {' | '.join(map(str, line))} |\n" for line in (header, *rows))
    return "".join([first, "|" + "---|" * len(header) + "\n", *lines])
