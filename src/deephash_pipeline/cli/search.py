"""``deephash-pipeline search``: the nearest pictures or vectors of an index, without PyTorch where there is a way."""

import json
import webbrowser
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import click

from deephash_pipeline.cli.columns import print_columns, print_left_out
from deephash_pipeline.cli.options import (
    FILE,
    FOLDER,
    approximate_option,
    device_option,
    engine_option,
    json_option,
    opened,
    overwrite_option,
)
from deephash_pipeline.cli.vectors import EXAMPLE_OF_WHERE, found_vectors, refuse_without_vectors
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.outputs import check_outputs
from deephash_pipeline.common.stores import write_all
from deephash_pipeline.hamming import Answers
from deephash_pipeline.hamming.replacing import holds_vectors
from deephash_pipeline.hashers.base import EncodedPixels
from deephash_pipeline.photographs import ImageIndex, list_images
from deephash_pipeline.photographs.changes import OF_THE_FILE
from deephash_pipeline.photographs.distinct import distinct
from deephash_pipeline.photographs.found_page import Asked, Found, is_page, render_found
from deephash_pipeline.photographs.listing import require_picture
from deephash_pipeline.photographs.nearness import of_bits, of_cosine

SHOWN = ("near", "folder", "path")


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
@click.option("--html", "html_file", type=FILE, help="Write a page with small pictures of what is found.")
@click.option("--open", "opens", is_flag=True, help="Show that page in the browser.")
@overwrite_option
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
    html_file: Path | None,
    opens: bool,
    overwrite: bool,
    as_json: bool,
    engine: str | None,
    approximate: bool,
    device: str,
) -> None:
    """Find the images of INDEX that are most like a PHOTO, or like each of a folder; of equal ones the first added.

    In an index of vectors, find those most like --queries, by cosine.
    """
    if holds_vectors(index):
        if photo or radius is not None or rescore or only_distinct or engine or approximate or html_file or opens:
            only = "PHOTO, --radius, --rescore, --distinct, --html, --open and --engine are for images"
            raise InputError(f"{index} has vectors: {only}")
        rows, expected = found_vectors(index, vectors, column, name, k, labels, recall, where)
        _print_rows(rows, as_json)
        click.echo(expected, err=True)
        return
    of_vectors = {"queries": vectors, "where": where, "column": column, "recall": recall}
    refuse_without_vectors(of_vectors, f"{index} is no index of vectors; leave it out, or name another INDEX")
    if (photo is None) == (name is None):
        raise InputError("give either a photo, or a folder of them, or --id of an image of the index")
    if radius is not None and radius < 0:
        raise InputError(f"--radius {radius}: give a number of bits from 0 on")
    if rescore and name is not None:
        raise InputError("--rescore is for a photo: leave it out with --id")
    if html_file is not None:
        check_outputs([html_file], [index], [is_page] if overwrite else [])
    files = [] if photo is None else _photos(photo)
    with opened(index, device if photo else "cpu", engine, approximate) as images:
        assert isinstance(images, ImageIndex)
        if not len(images):
            raise InputError(f"{index} is empty: `deephash-pipeline index build {index} PATHS` fills it")
        labelled = images.labelled(labels) if labels else None

        def found(query: EncodedPixels | str) -> list[Found]:
            def ask(k: int) -> Answers:
                if isinstance(query, str):
                    return images.search_by_id(query, k, labelled)
                if rescore:
                    return images.search_rescored(query, k, labelled)
                return images.index.search(query.codes, k, labelled)

            return _found(images, distinct(images.index, ask, k) if only_distinct else ask(k), radius)

        if name is not None:
            asked = [Asked(name, images.path_of(images.index.get(name).metadata) or Path(), found(name))]
        else:
            if rescore:
                images.require_features()
            asked = [Asked(str(path), path, found(query)) for path, query in _encoded(images, files)]
    page = render_found(asked, f"Found in {index}") if html_file or opens else ""
    if html_file is not None:
        write_all({html_file: page.encode()})
    if opens:
        _open(page, html_file)
    if as_json:
        rows = [{"query": each.name, "results": list(map(_row, each.rows))} for each in asked]
        _print_rows(rows if photo is not None and photo.is_dir() else list(map(_row, asked[0].rows)), as_json)
    else:
        for each in asked:
            if len(asked) > 1:
                click.echo(f"{'' if each is asked[0] else chr(10)}{each.name}")
            _print_rows(
                [{"near": row.near, "folder": row.folder, "path": row.shown} for row in each.rows], False, SHOWN
            )
    if approximate and not as_json:
        click.echo("approximate: near images may be missing", err=True)


def _photos(photo: Path) -> list[Path]:
    """The picture that is named, or those of a folder; what is none is said before anything is loaded."""
    if photo.is_dir():
        listed, unnamed = list_images([photo])
        print_left_out(unnamed)
        return [Path(image.id) for image in listed]
    if not photo.is_file():
        raise InputError(f"{photo} is not there: name an image file, a folder, or --id of an image of the index")
    require_picture(photo)
    return [photo]


def _encoded(images: ImageIndex, files: Sequence[Path]) -> Iterator[tuple[Path, EncodedPixels]]:
    """Each picture that can be read, encoded; others are named, and are an error where there is only one."""
    for batch in images.hasher.encode_batches(files, "raise" if len(files) == 1 else "skip"):
        print_left_out(batch.skipped)
        for place, row in enumerate(batch.rows.tolist()):
            own = slice(place, place + 1)
            features = None if batch.features is None else batch.features[own]
            yield files[row], EncodedPixels(batch.codes[own], features)


def _open(page: str, file: Path | None) -> None:
    if file is None:
        # The browser reads it after this has ended.
        with NamedTemporaryFile("w", suffix=".html", prefix="found-", encoding="utf-8", delete=False) as made:
            made.write(page)
            file = Path(made.name)
    webbrowser.open(file.absolute().as_uri())


def _row(found: Found) -> dict[str, Any]:
    return {"id": found.id, **found.about, "near": found.percent, "path": str(found.path) if found.path.name else ""}


def _print_rows(rows: list[dict[str, Any]], as_json: bool, columns: Sequence[str] = ()) -> None:
    # JSON has no bytes, and no infinity.
    rows = [{name: value for name, value in row.items() if not isinstance(value, bytes)} for row in rows]
    if as_json:
        finite = [{name: None if value in (inf, -inf) else value for name, value in row.items()} for row in rows]
        click.echo(json.dumps(finite, ensure_ascii=False))
        return
    columns = columns or list(dict.fromkeys(name for row in rows for name in row))
    print_columns([columns, *(["" if row.get(name) is None else str(row[name]) for name in columns] for row in rows)])


def _found(images: ImageIndex, answers: Answers, radius: int | None) -> list[Found]:
    ids, distances = answers.ids[0].tolist(), answers.distances[0].tolist()
    scores = [None] * len(ids) if answers.scores is None else answers.scores[0].tolist()
    rows = zip(ids, distances, scores, images.index.items(ids), strict=True)
    return [
        Found(
            str(name),
            images.path_of(item.metadata) or Path(),
            of_bits(distance, images.index.code_length) if score is None else of_cosine(1 - score),
            {"distance": distance, **{key: value for key, value in item.metadata.items() if key not in OF_THE_FILE}},
        )
        for name, distance, score, item in rows
        if radius is None or distance <= radius
    ]
