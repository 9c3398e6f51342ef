"""``deephash-pipeline duplicates``: files that show the same picture."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import click

from deephash_pipeline.cli.options import (
    FILE,
    FOLDER,
    device_option,
    overwrite_option,
    print_columns,
    print_left_out,
)
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.outputs import STANDARD_OUTPUT, check_outputs, starts_with
from deephash_pipeline.common.stores import write_whole
from deephash_pipeline.deephash import FeatureExtractor
from deephash_pipeline.search import HammingIndex
from deephash_pipeline.search.duplicates.finding import find_duplicates
from deephash_pipeline.search.duplicates.groups import Member
from deephash_pipeline.search.duplicates.levels import Level
from deephash_pipeline.search.duplicates.page import (
    absolute_path,
    embedded,
    has_line_break,
    is_page,
    readable_bytes,
    render_page,
)
from deephash_pipeline.search.images import ImageIndex, list_images

COLUMNS = ("action", "path", "width", "height", "bytes", "modified", "agreement", "reason")


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
@click.option("--index", type=FOLDER, help="Take the features of unchanged files from an index that keeps them.")
@click.option(
    "--strict",
    "level",
    flag_value=Level.STRICT,
    type=click.UNPROCESSED,
    help="Only what has hardly changed: cropped, but not framed; .0004 % of pairs were taken wrongly.",
)
@click.option(
    "--loose",
    "level",
    flag_value=Level.LOOSE,
    type=click.UNPROCESSED,
    help="Also with text or a logo over it; .0008 % of pairs were taken wrongly: look at what is found.",
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
    mirrored, brighter, grey, blurred or framed; of all pairs of other photographs .0005 % were taken wrongly for such.
    The one to keep has the most pixels, then colours, transparency, no loss, the most bytes and the oldest date. What
    has other details or colours than it is only to be looked at.
    """
    given = zip((json_file, csv_file, html_file, remove_list), OURS, strict=True)
    made = [(file, is_ours) for file, is_ours in given if file is not None]
    outputs, ours = [file for file, _ in made], [is_ours for _, is_ours in made] if overwrite else []
    check_outputs(outputs, [*paths, *against, *([index] if index else [])], ours)
    files, unnamed = list_images(paths)
    others, unnamed_others = list_images(against) if against else ([], [])
    check_outputs(outputs, [image.path for image in (*files, *others)], ours)
    network = partial(FeatureExtractor.pretrained, device=device)
    with ImageIndex.open(index, read_only=True, device="cpu") if index else nullcontext() as images:
        if images is not None and not (isinstance(images.index, HammingIndex) and images.index.features):
            raise InputError(f"{index} keeps no features: name one that was built without --hasher")
        found = find_duplicates(files, network, level or Level.DEFAULT, others, images)
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
        html_file: lambda: render_page(found, f"Duplicates in {', '.join(paths)}", embedded, absolute_path),
        remove_list: lambda: "".join(f"{line}\n" for line in lines if not has_line_break(line)),
    }
    # All are made before the first is written.
    for file, text in [(file, content()) for file, content in contents.items() if file is not None]:
        if file == STANDARD_OUTPUT:
            click.echo(text.encode(), nl=False)
        else:
            write_whole(file, text.encode())
    if rows and STANDARD_OUTPUT not in outputs:
        shown = ("group", "action", "width", "height", "bytes", "modified", "path", "reason")
        print_columns([shown, *([str(row[name]) for name in shown] for row in rows)])
    print_left_out(found.skipped)
    for line in lines if remove_list is not None else ():
        if has_line_break(line):
            click.echo(f"not in the list: {line!r}: its name has a line break", err=True)
    size = readable_bytes(sum(photo.bytes for photo in removable))
    click.echo(f"files: {found.pictures}, groups: {len(found.groups)}, copies: {len(removable)} ({size})", err=True)
    if not found.pictures:
        raise InputError(f"no picture in {', '.join(paths)} can be read: mend what is left out, or name others")


def _facts(member: Member) -> dict[str, Any]:
    photo = member.photo
    of_file = (photo.name, photo.width, photo.height, photo.bytes, photo.date)
    return dict(zip(COLUMNS, (member.action, *of_file, round(member.agreement, 3), member.reason), strict=True))


def _as_csv(rows: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, ["group", *COLUMNS])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
