"""``deephash-pipeline pairs``: all near pairs of an index."""

import csv
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import click

from deephash_pipeline.cli.options import FILE, FOLDER, overwrite_option
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.outputs import STANDARD_OUTPUT, check_outputs, starts_with
from deephash_pipeline.common.stores import replacing
from deephash_pipeline.hamming import HammingIndex

HEADER_OF_GROUPS, HEADER_OF_PAIRS = ("group", "id"), ("first", "second", "distance")


@click.command()
@click.argument("index", type=FOLDER)
@click.option("--radius", type=click.IntRange(0), required=True, help="Bits in which the codes of a pair may differ.")
@click.option("--against", type=FOLDER, help="Another index: pairs are of an item of INDEX and one of this.")
@click.option("--groups", is_flag=True, help="Items that chains of pairs connect, in place of pairs.")
@click.option("-o", "--out", type=FILE, default="-", help="CSV file to write.  [default: the terminal]")
@overwrite_option
def pairs(index: Path, radius: int, against: Path | None, groups: bool, out: Path, overwrite: bool) -> None:
    """List all pairs of items of INDEX whose codes differ in at most RADIUS bits, exactly, as CSV."""
    if groups and against is not None:
        raise InputError("--groups is of one index: leave --against out")
    headers = (f"{','.join(header)}\n" for header in (HEADER_OF_GROUPS, HEADER_OF_PAIRS))
    check_outputs(
        [out], [folder for folder in (index, against) if folder], [starts_with(*headers)] if overwrite else ()
    )
    with ExitStack() as opened:
        items = opened.enter_context(HammingIndex.open(index, read_only=True))
        if groups:
            numbered = enumerate(items.groups(radius), start=1)
            _write(out, HEADER_OF_GROUPS, ((number, item) for number, group in numbered for item in group))
        else:
            other = None if against is None else opened.enter_context(HammingIndex.open(against, read_only=True))
            found = items.pairs(radius, other)
            _write(out, HEADER_OF_PAIRS, (pair for block in found for pair in block))


def _write(out: Path, header: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> None:
    if out == STANDARD_OUTPUT:
        csv.writer(sys.stdout, lineterminator="\n").writerows(chain([header], rows))
        return
    count = 0
    with replacing(out) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for count, row in enumerate(rows, start=1):  # noqa: B007 (how many there were)
            writer.writerow(row)
    click.echo(f"{out}: {count} rows")
