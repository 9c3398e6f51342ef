"""``deephash-pipeline search``: the nearest pictures or vectors of an index, without PyTorch where there is a way."""

from pathlib import Path
from typing import Any

import click

from deephash_pipeline.cli.columns import print_rows
from deephash_pipeline.cli.options import (
    FILE,
    FOLDER,
    approximate_option,
    device_option,
    engine_option,
    json_option,
    overwrite_option,
)
from deephash_pipeline.cli.vectors import EXAMPLE_OF_WHERE, found_vectors, refuse_without_vectors
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming.index_folder import holds_vectors

OF_IMAGES = ("photo", "radius", "only_distinct", "engine", "approximate", "html_file", "opens")
"""Options that a search of vectors does not have."""


@click.command()
@click.argument("index", type=FOLDER)
@click.argument("photo", required=False, type=FOLDER)
@click.option("--id", "name", help="Search by an image of the index instead.")
@click.option("-k", default=10, show_default=True, help="How many to find.")
@click.option(
    "--radius", type=int, help="Find all at most so many bits away, at most k of them, in the order of codes."
)
@click.option("--label", "labels", multiple=True, help="Only of this label; may be repeated.")
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
@click.option("--html", "html_file", type=FILE, help="Write a page with small pictures of what is found.")
@click.option("--open", "opens", is_flag=True, help="Show that page in the browser.")
@overwrite_option
@json_option
@engine_option
@approximate_option
@device_option
def search(
    index: Path,
    vectors: Path | None,
    where: str | None,
    column: str | None,
    recall: float | None,
    **of_both: Any,
) -> None:
    """Find the images of INDEX that are most like a PHOTO, or like each of a folder; of equal ones the first added.

    Features that the index keeps bring the nearest codes into order.

    In an index of vectors, find those most like --queries, by cosine.
    """
    if holds_vectors(index):
        if any(of_both[name] is not None and of_both[name] is not False for name in OF_IMAGES):
            only = "PHOTO, --radius, --distinct, --html, --open and --engine are for images"
            raise InputError(f"{index} has vectors: {only}")
        rows, expected = found_vectors(
            index, vectors, column, of_both["name"], of_both["k"], of_both["labels"], recall, where
        )
        print_rows(rows, of_both["as_json"])
        click.echo(expected, err=True)
        return
    of_vectors = {"queries": vectors, "where": where, "column": column, "recall": recall}
    refuse_without_vectors(of_vectors, f"{index} is no index of vectors; leave it out, or name another INDEX")
    # A search of vectors needs nothing of images.
    from deephash_pipeline.cli.search_images import search_images  # noqa: PLC0415

    search_images(index, **of_both)
