"""``deephash-pipeline search``: the nearest pictures or vectors of an index, without PyTorch where there is a way."""

import json
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import click

from deephash_pipeline.cli.columns import print_columns
from deephash_pipeline.cli.options import (
    FOLDER,
    approximate_option,
    device_option,
    engine_option,
    json_option,
    opened,
)
from deephash_pipeline.cli.vectors import EXAMPLE_OF_WHERE, found_vectors, refuse_without_vectors
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import Answers
from deephash_pipeline.hamming.replacing import holds_vectors
from deephash_pipeline.photographs import ImageIndex
from deephash_pipeline.photographs.changes import OF_THE_FILE
from deephash_pipeline.photographs.distinct import distinct


@click.command()
@click.argument("index", type=FOLDER)
@click.argument("photo", required=False, type=FOLDER)
@click.option("--id", "name", help="Search by an image of the index instead.")
@click.option("-k", default=10, show_default=True, help="How many to find.")
@click.option("--radius", type=int, help="Find all at most so many bits away, at most k of them.")
@click.option("--label", "labels", multiple=True, help="Only of this label; may be repeated.")
@click.option("--rescore", is_flag=True, help="Bring the nearest into the order of the features that INDEX keeps.")
@click.option(
    "--distinct",
    "only_distinct",
    is_flag=True,
    help="Hide copies of photographs that come before; of scans of text it hides others too.",
)
@click.option("--queries", "--vectors", "vectors", type=FOLDER, help="Search an index of vectors by those in a file.")
@click.option("--where", help=f"Conditions on metadata of vectors, in JSON: {EXAMPLE_OF_WHERE}.")
@click.option("--column", help="Column of that Parquet file, or tensor of that safetensors file.")
@click.option("--recall", type=float, help="Of a search by vectors, in place of what the index was built for.")
@json_option
@engine_option
@approximate_option
@device_option
def search(
    index: Path,
    photo: Path | None,
    name: str | None,
    k: int,
    radius: int | None,
    labels: Sequence[str],
    rescore: bool,
    only_distinct: bool,
    vectors: Path | None,
    where: str | None,
    column: str | None,
    recall: float | None,
    as_json: bool,
    engine: str | None,
    approximate: bool,
    device: str,
) -> None:
    """Find the images of INDEX that are most like a PHOTO; of equal distances those that were added first.

    In an index of vectors, find those most like --queries, by cosine.
    """
    if holds_vectors(index):
        if photo or radius is not None or rescore or only_distinct or engine or approximate:
            raise InputError(f"{index} has vectors: PHOTO, --radius, --rescore, --distinct and --engine are for images")
        rows, expected = found_vectors(index, vectors, column, name, k, labels, recall, where)
        _print_rows(rows, as_json)
        click.echo(expected, err=True)
        return
    of_vectors = {"queries": vectors, "where": where, "column": column, "recall": recall}
    refuse_without_vectors(of_vectors, f"{index} is no index of vectors; leave it out, or name another INDEX")
    if (photo is None) == (name is None):
        raise InputError("give either a photo or --id of an image of the index")
    if photo is not None and photo.is_dir():
        raise InputError(f"{photo} is a folder: name an image file")
    if photo is not None and not photo.is_file():
        raise InputError(f"{photo} is not there: name an image file, or --id of an image of the index")
    if rescore and name is not None:
        raise InputError("--rescore is for a photo: leave it out with --id")
    device = device if photo else "cpu"
    with opened(index, device, engine, approximate) as images:
        assert isinstance(images, ImageIndex)
        labelled = images.labelled(labels) if labels else None

        def ask(k: int) -> Answers:
            if name is not None:
                return images.search_by_id(name, k, labelled)
            assert photo is not None
            return images.search(photo, k, labelled, rescore)

        answers = distinct(images.index, ask, k) if only_distinct else ask(k)
        rows = _rows(images, answers, radius)
    _print_rows(rows, as_json, ("distance", "label", "id"))
    if approximate and not as_json:
        click.echo("approximate: near images may be missing", err=True)


def _print_rows(rows: list[dict[str, Any]], as_json: bool, columns: Sequence[str] = ()) -> None:
    # JSON has no bytes, and no infinity.
    rows = [{name: value for name, value in row.items() if not isinstance(value, bytes)} for row in rows]
    if as_json:
        finite = [{name: None if value in (inf, -inf) else value for name, value in row.items()} for row in rows]
        click.echo(json.dumps(finite, ensure_ascii=False))
        return
    columns = columns or list(dict.fromkeys(name for row in rows for name in row))
    print_columns([columns, *(["" if row.get(name) is None else str(row[name]) for name in columns] for row in rows)])


def _rows(images: ImageIndex, answers: Answers, radius: int | None) -> list[dict[str, Any]]:
    if radius is not None and radius < 0:
        raise InputError(f"--radius {radius}: give a number of bits from 0 on")
    found = [(name, distance) for name, distance in answers[0] if radius is None or distance <= radius]
    items = images.index.items([name for name, _ in found])
    return [
        {
            "id": name,
            "distance": distance,
            **{column: value for column, value in item.metadata.items() if column not in OF_THE_FILE},
            "path": str(images.path_of(item.metadata) or ""),
        }
        for (name, distance), item in zip(found, items, strict=True)
    ]
