"""The verdicts of docs/results/fair-comparison: `python -m benchmarks.studies.fair_comparison`.

Judges the stored tables of seeds anew, from their means, deviations and numbers of seeds, and writes what is marked and
said of them on the page and in README.md between markers. Nothing is trained.
"""

import sys

import pandas as pd

from benchmarks.documents import PROJECT, markdown_table, replaced_between_markers
from deephash_pipeline.common.stores import replacing
from deephash_pipeline.reports.seeds import cell_text, with_verdicts
from deephash_pipeline.tuning.significance import SignificanceParameters

PAGE, README = PROJECT / "docs" / "results" / "fair-comparison.md", PROJECT / "README.md"
FOLDER = PAGE.with_suffix("")
TABLES = {"digits": "seeds.csv", "MNIST": "seeds-mnist.csv", "CIFAR-10": "seeds-cifar10.csv"}
"""Stored table of each benchmark."""

PROTOCOLS = {"paper": "training set", "held_out": "held out", "unseen": "unseen classes"}
SHOWN_AT = 48
NAMED = 6
"""As many tied methods are named; of more the number stands."""


def judged(stored: pd.DataFrame) -> pd.DataFrame:
    """Give a stored table, read as text, the verdicts that its means, deviations and numbers of seeds carry."""
    numbers = {name: pd.to_numeric(stored[name]) for name in ("code_length", "mean", "standard_deviation", "seeds")}
    verdicts = with_verdicts(stored.assign(**numbers), SignificanceParameters())
    shown = {name: verdicts[name].map("{:.6g}".format, na_action="ignore") for name in ("difference", "p_value")}
    former = [name for name in ("low", "high", "adjusted_p_value", "tied") if name in stored]
    return stored.drop(columns=former).assign(**shown, verdict=verdicts["verdict"])


def read(name: str) -> pd.DataFrame:
    """Read the stored table of a benchmark as text, nothing for what is missing."""
    return pd.read_csv(FOLDER / TABLES[name], dtype=str)


def sections(tables: dict[str, pd.DataFrame]) -> dict[str, str]:
    """Render the tables of the page and of README.md, by the names of their markers.

    Args:
        tables: of `judged`, by benchmark.
    """
    numbers = {}
    for name, table in tables.items():
        columns = ("code_length", "mean", "standard_deviation", "seeds")
        numbers[name] = table.assign(**{column: pd.to_numeric(table[column]) for column in columns})
    verdicts = [row for name, table in numbers.items() for row in _verdicts(name, table)]
    of_column = {row["benchmark, database, bits"]: row for row in verdicts}
    at_length = {name: of_column[f"{name}, {PROTOCOLS['paper']}, {SHOWN_AT}"] for name in tables if name != "digits"}
    shown = {}
    for name, table in numbers.items():
        shown[name] = _marked(table, {text: (key, SHOWN_AT) for key, text in PROTOCOLS.items()})
    return {
        **shown,
        "verdicts": markdown_table(verdicts),
        "README": "; ".join(
            f"{row['highest mean'].partition(', 0.')[0]} on {name} "
            f"(of {_compared(numbers[name])} methods; tied: {row['tied with it']})"
            for name, row in at_length.items()
        )
        + ".",
    }


def _marked(table: pd.DataFrame, columns: dict[str, tuple[str, int]]) -> str:
    cells = table.set_index(["method", "protocol", "code_length"])
    return markdown_table(
        {"method": method} | {heading: cell_text(cells.loc[(method, *cell)]) for heading, cell in columns.items()}
        for method in table["method"].unique()
    )


def _compared(table: pd.DataFrame) -> int:
    """Count the methods that the table in README.md could name: those with several seeds."""
    shown = (table["protocol"] == "paper") & (table["code_length"] == SHOWN_AT)
    return int((shown & (table["seeds"] > 1)).sum())


def _verdicts(benchmark: str, table: pd.DataFrame) -> list[dict[str, str]]:
    rows = []
    for (protocol, bits), own in table.groupby(["protocol", "code_length"], sort=False):
        best, tied = own[own["verdict"] == "best"].iloc[0], own[own["verdict"] == "tied"]["method"].tolist()
        rows.append(
            {
                "benchmark, database, bits": f"{benchmark}, {PROTOCOLS[str(protocol)]}, {bits}",
                "highest mean": f"{best['method']}, {best['mean']:.4f} ± {best['standard_deviation']:.4f}",
                "tied with it": f"{len(tied)} methods" if len(tied) > NAMED else ", ".join(tied) or "\N{EN DASH}",
                "worse": str((own["verdict"] == "worse").sum()),
                "no verdict": str((own["seeds"] == 1).sum()),
            }
        )
    return rows


def main() -> int:
    """Write tables, page and README.md anew."""
    tables = {name: judged(read(name)) for name in TABLES}
    for name, table in tables.items():
        with replacing(FOLDER / TABLES[name]) as temporary:
            table.to_csv(temporary, index=False)
    for document in (PAGE, README):
        text = document.read_text(encoding="utf-8")
        for name, content in sections(tables).items():
            if (name == "README") == (document == README):
                text = replaced_between_markers(text, f"fair_comparison {name}", content)
        with replacing(document) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
