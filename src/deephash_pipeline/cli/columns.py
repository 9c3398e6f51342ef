"""Printed columns, and images that are left out, for several commands."""

from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich.cells import cell_len

CONTROL_CHARACTERS = {code: ascii(chr(code))[1:-1] for code in (*range(32), 127)}


def print_left_out(broken: Iterable[Any]) -> None:
    """Name images that are left out, a line each, and why."""
    for image in broken:
        click.echo(f"left out: {image.name}: {image.reason}".translate(CONTROL_CHARACTERS), err=True)


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns of which nothing is cut or wrapped, in a pipe as in a terminal; a row is a line."""
    shown = [[cell.translate(CONTROL_CHARACTERS) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())
