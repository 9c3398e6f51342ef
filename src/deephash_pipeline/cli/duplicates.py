"""``deephash-pipeline duplicates``: files that show the same picture."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import click
import rich

from deephash_pipeline.cli.columns import print_columns, print_left_out
from deephash_pipeline.cli.options import (
    FILE,
    FOLDER,
    device_option,
    overwrite_option,
)
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.outputs import STANDARD_OUTPUT, check_outputs, starts_with
from deephash_pipeline.common.stores import write_all
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.images.batches import SkippedImage
from deephash_pipeline.photographs import ImageIndex, list_images
from deephash_pipeline.photographs.duplicates.groups import Member
from deephash_pipeline.photographs.duplicates.levels import Level
from deephash_pipeline.photographs.duplicates.network import Network
from deephash_pipeline.photographs.duplicates.page import (
    Shown,
    absolute_path,
    embedded,
    file_address,
    has_line_break,
    is_page,
    readable_bytes,
    render_page,
)
from deephash_pipeline.photographs.listing import ListedImage

DUPLICATES_COLUMNS = ("action", "path", "width", "height", "bytes", "modified", "agreement", "reason")

IN_A_FILE = Shown(embedded, file_address, absolute_path)


def _is_remove_list(file: Path) -> bool:
    lines = file.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    return all(line.startswith("/") for line in lines)


OURS = (starts_with('{"files": ', '{\n "files": '), starts_with("group,action,path,"), is_page, _is_remove_list)
"""What tells by their format that this command has made its four outputs."""


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--against", multiple=True, help="Folder of others: of PATHS, only what has a copy here. May be repeated."
)
@click.option("--exclude", multiple=True, metavar="PATTERN", help="Pass over paths, or names in them, like Export*.")
@click.option(
    "--keep-from", multiple=True, type=FOLDER, help="Folder whose files are kept before others; the first, first."
)
@click.option("--index", type=FOLDER, help="Take the features of unchanged files from an index that keeps them.")
@click.option(
    "--strict",
    "level",
    flag_value=Level.STRICT,
    type=click.UNPROCESSED,
    help=f"Only what has hardly changed: cropped, but not framed. It {Level.STRICT.measured}.",
)
@click.option(
    "--loose",
    "level",
    flag_value=Level.LOOSE,
    type=click.UNPROCESSED,
    help="Also with text or a logo over it, or strongly compressed: look at what is found. "
    f"It {Level.LOOSE.measured}. Without an option it {Level.DEFAULT.measured}.",
)
@click.option("--json", "json_file", type=FILE, help="Write the groups as JSON; - to standard output.")
@click.option("--csv", "csv_file", type=FILE, help="Write the groups as CSV, a row for each file.")
@click.option("--html", "html_file", type=FILE, help="Write a page with the pictures side by side.")
@click.option("--remove-list", type=FILE, help="Write the paths of the copies, a line each, for a tool of yours.")
@overwrite_option
@device_option
def duplicates(
    paths: Sequence[str],
    against: Sequence[str],
    exclude: Sequence[str],
    keep_from: Sequence[Path],
    index: Path | None,
    level: Level | None,
    json_file: Path | None,
    csv_file: Path | None,
    html_file: Path | None,
    remove_list: Path | None,
    overwrite: bool,
    device: str,
) -> None:
    """Find files in PATHS that show the same picture, and say which to keep and why; nothing is deleted.

    PATHS are folders, globs, files, or CSVs with a column path. Copies may be recompressed, resized, cropped, turned,
    mirrored, brighter, grey, blurred, framed or in a screenshot. The one to keep has the most pixels, then date and
    place, colours, transparency, no loss, the most bytes and the oldest date. To be removed is only what is the same in
    every part; all else is to be looked at. Raw files, and folders of trash, previews and thumbnails, are passed over.
    """
    # What is logged must not stand in what is piped.
    rich.get_console().stderr = True
    given = zip((json_file, csv_file, html_file, remove_list), OURS, strict=True)
    made = [(file, is_ours) for file, is_ours in given if file is not None]
    outputs, ours = [file for file, _ in made], [is_ours for _, is_ours in made] if overwrite else []
    check_outputs(outputs, [*paths, *against, *([index] if index else [])], ours)
    for folder in keep_from:
        if not folder.is_dir():
            raise InputError(f"--keep-from {folder} is no folder: name one")
    files, unnamed = _listed(paths, exclude)
    others, unnamed_others = _listed(against, exclude) if against else ([], [])
    check_outputs(outputs, [image.path for image in (*files, *others)], ours)
    _check_reference(files, others, against)
    from deephash_pipeline.photographs.duplicates.finding import find_duplicates  # noqa: PLC0415 - after what is wrong

    with ImageIndex.open(index, read_only=True, device="cpu", runtime="late") if index else nullcontext() as images:
        if images is not None and not (isinstance(images.index, HammingIndex) and images.index.features):
            raise InputError(f"{index} keeps no features: name one that was built without --hasher")
        found = find_duplicates(files, Network(device), level or Level.DEFAULT, others, images, keep_from)
    found.skipped[:0] = [*unnamed, *unnamed_others]
    groups = [list(map(_facts, group.members)) for group in found.groups]
    rows = [{"group": number, **row} for number, group in enumerate(groups, start=1) for row in group]
    removable = [photo for group in found.groups for photo in group.removable]
    lines = [absolute_path(photo) for photo in removable]
    skipped = [{"path": broken.name, "reason": broken.reason} for broken in found.skipped]
    as_json = {"files": found.pictures, "groups": groups, "skipped": skipped}
    contents: dict[Path | None, Callable[[], str]] = {
        json_file: lambda: json.dumps(as_json, ensure_ascii=False, indent=1) + "\n",
        csv_file: lambda: _as_csv(rows),
        html_file: lambda: render_page(found, f"Duplicates in {', '.join(paths)}", IN_A_FILE),
        remove_list: lambda: "".join(f"{line}\n" for line in lines if not has_line_break(line)),
    }
    # All are made before the first is written.
    texts = {file: content().encode() for file, content in contents.items() if file is not None}
    printed = texts.pop(STANDARD_OUTPUT, None)
    write_all(texts)
    if printed is not None:
        click.echo(printed, nl=False)
    if rows and STANDARD_OUTPUT not in outputs:
        shown = ("group", "action", "width", "height", "bytes", "modified", "path", "reason")
        print_columns([shown, *([str(row[name]) for name in shown] for row in rows)])
    print_left_out(found.skipped)
    for line in lines if remove_list is not None else ():
        if has_line_break(line):
            click.echo(f"not in the list: {line!r}: its name has a line break", err=True)
    size = readable_bytes(sum(photo.bytes for photo in removable))
    click.echo(f"files: {found.pictures}, groups: {len(found.groups)}, copies: {len(removable)} ({size})", err=True)
    level = level or Level.DEFAULT
    click.echo(f"level: {level.shown}; where it was measured, it {level.measured}", err=True)
    if not found.pictures:
        raise InputError(f"no picture in {', '.join(paths)} can be read: mend what is left out, or name others")


def _listed(paths: Sequence[str], exclude: Sequence[str]) -> tuple[list[ListedImage], list[SkippedImage]]:
    """List the pictures of paths but for those that a pattern of what to leave out matches."""
    listed, unnamed = list_images(paths)
    chosen = [image for image in listed if not _is_excluded(image.id, exclude)]
    if not chosen and listed:
        raise InputError(f"--exclude {' '.join(exclude)} leaves no picture of {', '.join(paths)}: give another pattern")
    if exclude:
        click.echo(f"passed over by --exclude: {len(listed) - len(chosen)}", err=True)
    return chosen, unnamed


def _is_excluded(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(part, pattern) for pattern in patterns for part in (name, *Path(name).parts))


def _check_reference(files: Sequence[ListedImage], others: Sequence[ListedImage], against: Sequence[str]) -> None:
    """Say which files are of the reference too; refuse if all are, since then none could be a copy.

    Raises:
        InputError: all are.
    """
    places = {image.path for image in others}
    both = sum(image.path in places for image in files)
    if both and both == len(files):
        raise InputError(f"all of PATHS is in --against {', '.join(against)} too: name a folder of other files")
    if both:
        click.echo(f"{both} of {len(files)} files are in --against too: they are kept", err=True)


def _facts(member: Member) -> dict[str, Any]:
    photo = member.photo
    of_file = (photo.name, photo.width, photo.height, photo.bytes, photo.date)
    return dict(
        zip(DUPLICATES_COLUMNS, (member.action, *of_file, round(member.agreement, 3), member.reason), strict=True)
    )


def _as_csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, ["group", *DUPLICATES_COLUMNS])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
