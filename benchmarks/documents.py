"""Benchmarks as files: results in one JSON, rendered as tables between the markers of a document."""

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import Any

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import replacing

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "benchmarks" / "results"
PERFORMANCE_DOCUMENT = PROJECT / "docs" / "results" / "performance.md"
LINE_WIDTH, INTERRUPTED = 150, 130

Results = dict[str, Any]
Settings = dict[str, Any]
Rows = Iterable[Mapping[str, object]]


@dataclass(frozen=True)
class Benchmark:
    """What is measured into `benchmarks/results/<name>.json`, and the document that shows it.

    `measure` maps settings, of which numbers and words are options of the command line, to results, whose `tables` are
    the rows of each table, or a text, by the name of its marker without the benchmark's. A paragraph on the `run` is
    added, with machine, versions, settings and the `note` of the results. `distributions` are the packages whose
    versions matter. The document shows the run and those tables for which it has markers; the JSON has all.
    """

    name: str
    measure: Callable[[Settings], Results]
    settings: Settings
    quick: Settings = field(default_factory=dict)
    distributions: tuple[str, ...] = ("numpy", "numba", "torch")
    document: Path = PERFORMANCE_DOCUMENT

    def sections(self, results: Results) -> dict[str, str]:
        """Render the content of each marked section of the document."""
        contents = {"run": results["run"], **results["tables"]}.items()
        return {
            f"{self.name} {name}": rows if isinstance(rows, str) else markdown_table(rows) for name, rows in contents
        }

    def shown_in(self, text: str, results: Results) -> str:
        """Render the text of the document with the sections for which it has markers; that of the run must be there."""
        for section, content in self.sections(results).items():
            if section == f"{self.name} run" or f"<!-- {section}: " in text:
                text = replaced_between_markers(text, section, content)
        return text

    def read(self) -> Results:
        """Read the stored results."""
        results: Results = json.loads((RESULTS / f"{self.name}.json").read_text(encoding="utf-8"))
        return results

    def main(self, documentation: str | None, arguments: Sequence[str] | None = None) -> int:
        """Measure, store and render, or what the command line asks for; return the exit code."""
        parser = argparse.ArgumentParser(description=(documentation or "").partition("\n")[0])
        parser.add_argument("--quick", action="store_true", help="a short measurement, printed and not written")
        for name, value in self.settings.items():
            if isinstance(value, int | float | str) and not isinstance(value, bool):
                parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), help=f"default: {value}")
        options = vars(parser.parse_args(arguments))
        settings = self.settings | (self.quick if options["quick"] else {})
        settings |= {name: value for name, value in options.items() if name in settings and value is not None}
        logging.basicConfig(format="%(message)s")
        logging.getLogger("deephash_pipeline").setLevel(logging.INFO)
        try:
            # Imports PyTorch, which is no part of the memory that some benchmarks measure.
            from benchmarks.measuring import describe_run  # noqa: PLC0415

            run = describe_run(self.distributions)
            results = {"settings": settings, **self.measure(settings)}
            named = (f"{name.replace('_', ' ')} {_words(value)}" for name, value in results["settings"].items())
            paragraph = f"{run} Settings: {'; '.join(named)}. {results.pop('note', '')}".strip()
            results = {"run": fill(paragraph, LINE_WIDTH, break_on_hyphens=False), **results}
            if options["quick"]:
                print(*self.sections(results).values(), sep="\n\n")
                return 0
            with replacing(RESULTS / f"{self.name}.json") as temporary:
                temporary.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
            text = self.shown_in(self.document.read_text(encoding="utf-8"), results)
            with replacing(self.document) as temporary:
                temporary.write_text(text, encoding="utf-8")
        except (InputError, OSError) as error:
            print(" ".join(str(error).split()), file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            print("stopped; nothing was written", file=sys.stderr)
            return INTERRUPTED
        return 0


def markdown_table(rows: Rows) -> str:
    """Render rows, all with the same keys, as a Markdown table with these keys as its header."""
    rows = list(rows)
    lines = [
        f"| {' | '.join(map(str, line))} |" for line in (rows[0], *([row[name] for name in rows[0]] for row in rows))
    ]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def rows_by(template: str, items: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Format items as rows of a table, by a template of its columns.

    >>> rows_by("bits: {code_length} | mAP: {metrics[mean]:.2f}", [{"code_length": 12, "metrics": {"mean": 0.987}}])
    [{'bits': '12', 'mAP': '0.99'}]
    """
    columns = [column.partition(": ")[::2] for column in template.split(" | ")]
    return [{name: cell.format(**item) for name, cell in columns} for item in items]


def _words(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(" ".join(map(str, part)) if isinstance(part, list | tuple) else _words(part) for part in value)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value).lower()


def three_digits(value: float) -> str:
    """A number to three significant digits, without an exponent unless it is tiny."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:#.3g}"


def replaced_between_markers(text: str, section: str, content: str) -> str:
    """Replace what is between `<!-- section: begin -->` and `<!-- section: end -->`; InputError unless each is once."""
    begin, end = f"<!-- {section}: begin -->", f"<!-- {section}: end -->"
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    if text.count(begin) != 1 or text.count(end) != 1 or end not in rest:
        raise InputError(
            f"the document must contain {begin} and, after it, {end}, each once; put them where tables go."
        )
    return f"{before}{begin}\n\n{content.strip()}\n\n{end}{after}"
