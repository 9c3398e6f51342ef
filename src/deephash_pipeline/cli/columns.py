"""Printed columns, and images that are left out, for several commands."""

import json
from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

import click
from rich.cells import cell_len

CONTROL_CHARACTERS = {code: ascii(chr(code))[1:-1] for code in (*range(32), 127)}


def print_left_out(broken: Iterable[Any]) -> None:
    """Name images that are left out, a line each, and why; of several say how many."""
    count = 0
    for count, image in enumerate(broken, start=1):  # noqa: B007 - the count is said after the last
        click.echo(f"left out: {image.name}: {image.reason}".translate(CONTROL_CHARACTERS), err=True)
    if count > 1:
        click.echo(f"left out in all: {count}", err=True)


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns of which nothing is cut or wrapped, in a pipe as in a terminal; a row is a line."""
    shown = [[cell.translate(CONTROL_CHARACTERS) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def print_rows(rows: list[dict[str, Any]], as_json: bool, columns: Sequence[str] = ()) -> None:
    """Print rows in a table with these columns, by default all that there are, or as JSON."""
    # JSON has no bytes, and no infinity.
    rows = [{name: value for name, value in row.items() if not isinstance(value, bytes)} for row in rows]
    if as_json:
        finite = [{name: None if value in (inf, -inf) else value for name, value in row.items()} for row in rows]
        click.echo(json.dumps(finite, ensure_ascii=False))
        return
    columns = columns or list(dict.fromkeys(name for row in rows for name in row))
    print_columns([columns, *(["" if row.get(name) is None else str(row[name]) for name in columns] for row in rows)])
