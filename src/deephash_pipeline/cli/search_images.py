"""Answers of ``deephash-pipeline search`` in an index of images."""

import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import click

from deephash_pipeline.cli.columns import print_left_out, print_rows
from deephash_pipeline.cli.options import opened
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.outputs import check_outputs
from deephash_pipeline.common.stores import write_all
from deephash_pipeline.hamming import Answers
from deephash_pipeline.hashers.base import EncodedPixels
from deephash_pipeline.photographs import ImageIndex, list_images
from deephash_pipeline.photographs.changes import OF_THE_FILE
from deephash_pipeline.photographs.distinct import distinct
from deephash_pipeline.photographs.found_page import AskedPicture, Found, is_found_page, render_found
from deephash_pipeline.photographs.listing import require_picture
from deephash_pipeline.photographs.nearness import of_bits, of_cosine
from deephash_pipeline.photographs.ordering import may_order

SHOWN_COLUMNS = ("near", "folder", "path")


def search_images(
    index: Path,
    photo: Path | None,
    name: str | None,
    k: int,
    radius: int | None,
    labels: Sequence[str],
    only_distinct: bool,
    html_file: Path | None,
    opens: bool,
    overwrite: bool,
    as_json: bool,
    engine: str | None,
    approximate: bool,
    device: str,
) -> None:
    """Find the images that are most like a photo, each of a folder, or an image of the index, and show them.

    Raises:
        InputError: options do not fit each other, or a file or the index cannot be read.
    """
    if (photo is None) == (name is None):
        raise InputError("give either a photo, or a folder of them, or --id of an image of the index")
    if radius is not None and radius < 0:
        raise InputError(f"--radius {radius}: give a number of bits from 0 on")
    if html_file is not None:
        check_outputs([html_file], [index], [is_found_page] if overwrite else [])
    files = [] if photo is None else _photos(photo)
    with opened(index, device if photo else "cpu", engine, approximate) as images:
        assert isinstance(images, ImageIndex)
        if not len(images):
            raise InputError(f"{index} is empty: `deephash-pipeline index build {index} PATHS` fills it")
        labelled = images.labelled(labels) if labels else None
        by_features = radius is None and may_order(images)

        def found(query: EncodedPixels | str) -> list[Found]:
            def ask(k: int) -> Answers:
                if by_features:
                    return images.search_rescored(query, k, labelled)
                if isinstance(query, str):
                    return images.search_by_id(query, k, labelled)
                return images.index.search(query.codes, k, labelled)

            return _found(images, distinct(images.index, ask, k) if only_distinct else ask(k), radius)

        if name is not None:
            asked = [AskedPicture(name, images.path_of(images.index.get(name).metadata) or Path(), found(name))]
        else:
            asked = [AskedPicture(str(path), path, found(query)) for path, query in _encoded(images, files)]
    page = render_found(asked, f"Found in {index}") if html_file or opens else ""
    if html_file is not None:
        write_all({html_file: page.encode()})
    if opens:
        _open(page, html_file)
    if as_json:
        rows = [{"query": each.name, "results": list(map(_row, each.rows))} for each in asked]
        print_rows(rows if photo is not None and photo.is_dir() else list(map(_row, asked[0].rows)), as_json)
    else:
        for each in asked:
            if len(asked) > 1:
                click.echo(f"{'' if each is asked[0] else chr(10)}{each.name}")
            print_rows(
                [{"near": row.near, "folder": row.folder, "path": row.shown} for row in each.rows], False, SHOWN_COLUMNS
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
