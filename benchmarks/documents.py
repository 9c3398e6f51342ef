"""Results of benchmarks as files: one JSON that machines read, and tables of a document that are written from it."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deephash_pipeline.errors import InputError

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "benchmarks" / "results"
PERFORMANCE_DOCUMENT = PROJECT / "docs" / "performance.md"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; every row has as many cells as the header."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def replaced_between_markers(text: str, section: str, content: str) -> str:
    """Return `text` with what stands between `<!-- section: begin -->` and `<!-- section: end -->` replaced.

    Raises:
        InputError: unless both markers are there once, in this order.
    """
    begin, end = f"<!-- {section}: begin -->", f"<!-- {section}: end -->"
    before, found_begin, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    if not (found_begin and found_end) or text.count(begin) > 1 or text.count(end) > 1:
        raise InputError(f"the document must hold {begin} and, behind it, {end}, each once; put them where tables go.")
    return f"{before}{begin}\n\n{content.strip()}\n\n{end}{after}"


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name and rename it, so that a stopped run leaves the former one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_section(section: str, content: str, document: Path = PERFORMANCE_DOCUMENT) -> None:
    """Replace what stands between the markers of a section of a document."""
    text = document.read_text(encoding="utf-8")
    write_text(document, replaced_between_markers(text, section, content))


def write_results(path: Path, results: dict[str, Any]) -> None:
    """Write results as indented JSON."""
    write_text(path, json.dumps(results, indent=1) + "\n")


def read_results(path: Path) -> dict[str, Any]:
    """Read what `write_results` has written.

    Raises:
        InputError: if there is no such file.
    """
    if not path.is_file():
        raise InputError(f"{path} is not there; `make bench` measures and writes it.")
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return results
