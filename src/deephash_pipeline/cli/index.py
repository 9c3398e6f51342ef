"""``deephash-pipeline index``: an index of pictures or vectors, made, changed and described."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deephash_pipeline.cli.columns import print_columns, print_left_out
from deephash_pipeline.cli.hashers import HASHER_HELP, is_cell, named_hasher
from deephash_pipeline.cli.options import FOLDER, device_option, json_option, opened
from deephash_pipeline.cli.vectors import (
    FACTS,
    add_vectors,
    build_of_vectors,
    facts_of_vectors,
    refuse_without_vectors,
    vectors_options,
)
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import INDEX_FILE, holds_index
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.hamming.index_folder import delete_index, holds_vectors
from deephash_pipeline.hashers import BaseHasher
from deephash_pipeline.images.batches import SkippedImage
from deephash_pipeline.photographs import (
    AddedImages,
    ImageIndex,
    ListedImage,
    add_files,
    bring_up_to_date,
    has_other_hasher,
    list_images,
    rebuilt,
    searched_folders,
)
from deephash_pipeline.photographs.changes import gone
from deephash_pipeline.photographs.fitted import BITS, fewest, has_outgrown, hasher_of, refit
from deephash_pipeline.photographs.listing import reason_unreadable
from deephash_pipeline.photographs.stored import is_shipped, keep_model
from deephash_pipeline.photographs.updating import Missing

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher
    from deephash_pipeline.encoding import CodeFolder

method_option = click.option("--method", help="Hash function to fit, a name that `methods` lists.")


@click.group()
def index() -> None:
    """Make an index of images or vectors, and change it."""


@index.command()
@click.argument("index", type=FOLDER)
@click.option("--hasher", help=HASHER_HELP)
@click.argument("paths", nargs=-1)
@click.option("--codes", help="Index the codes that `encode` has made into this folder; they bring their hasher.")
@click.option("--anew", is_flag=True, help="Replace an index that was made with another hasher, or of vectors.")
@vectors_options
@method_option
@click.option("--bits", type=int, help="Of a code; of images 64, 128 or 256 [128], of vectors 1 to 4096.")
@click.option("--rescore", help="How vectors are stored for that: int8, float16 or none; int8.")
@click.option("--recall", type=float, help="Share of the exact answers that searches are to find; 0.99.")
@click.option("--queries", type=click.Path(path_type=Path), help="File of vectors to measure recall with.")
@click.option("--keep-missing", "missing", flag_value="none", help="Keep images whose files are gone.")
@click.option("--remove-missing", "missing", flag_value="all", help="Remove them, even if more than half are gone.")
@click.option("--verify", is_flag=True, help="Read all files, not only those of another size or time.")
@device_option
def build(
    index: Path,
    hasher: str | None,
    paths: Sequence[str],
    codes: str | None,
    anew: bool,
    missing: Missing | None,
    verify: bool,
    device: str,
    **options: Any,
) -> None:
    """Make INDEX of the images in PATHS: folders, globs, files, or CSVs with a column path; or of --vectors.

    Without --hasher it keeps the features of photographs and fits a hash function on them; --hasher brings its own.
    Of an index that is there, new files are added, changed ones encoded again, and those removed whose files are gone
    from the folders in PATHS. A build that was stopped goes on where it was. The database of a run is indexed by the
    pipeline `indexing`.
    """
    if options["vectors"] is not None:
        if hasher or codes or paths:
            raise InputError("--vectors are indexed alone: leave out --hasher, --codes and PATHS")
        build_of_vectors(index, anew, **options)
        return
    method, labels, bits = (options.pop(name) for name in ("method", "labels", "bits"))
    refuse_without_vectors(options)
    if codes and (paths or hasher):
        raise InputError("give either PATHS, with --hasher or without, or --codes and neither")
    if (hasher or codes) and (method or labels or bits):
        raise InputError("--method, --labels and --bits fit a hash function: leave out --hasher and --codes")
    if labels not in (None, "folder"):
        raise InputError(f"--labels {labels}: of images, give `folder`; a CSV in PATHS may have a column label")
    if bits not in (None, *BITS):
        raise InputError(f"--bits {bits}: of images, give {', '.join(map(str, BITS[:-1]))} or {BITS[-1]}")
    if not (paths or codes):
        of_run = " (a run's database: kedro run --pipelines=indexing)" if hasher and is_cell(hasher) else ""
        raise InputError(f"no PATHS are given: name folders, globs or CSV files of images{of_run}")
    # A folder that has lost all its pictures is a state that an index is brought to.
    files, skipped = list_images(paths, empty=holds_index(index)) if paths else ([], [])
    if files and not holds_index(index):
        _require_pictures(index, files)
    if method is not None:
        from deephash_pipeline.hashing import require_hash_function  # noqa: PLC0415 - scikit-learn takes seconds

        require_hash_function(method)
    encoded = _encoded(codes) if codes else None
    made: BaseHasher
    own = not (hasher or codes)
    if encoded is not None:
        made = encoded.hasher(device)
    else:
        made = named_hasher(hasher, device) if hasher else hasher_of(index, bits, device, anew)
    if own and (method or labels) and not is_shipped(made):
        raise InputError(f"{index} has a hash function already: `index refit {index}` makes another")
    replacing = anew and has_other_hasher(index, made)
    with rebuilt(index, made, features=own) if replacing else _made_or_opened(index, made, own) as images:
        click.echo(f"{made!r}, trained on {made.description.trained_on}", err=True)
        if encoded is not None:
            from deephash_pipeline.encoding import add_encoded  # noqa: PLC0415

            report = add_encoded(images, encoded)
        else:
            report = bring_up_to_date(images, files, searched_folders(paths), missing or "few", verify)
        _report(index, images, report, skipped, emptied=bool(paths) and not files)
        assert isinstance(images.index, HammingIndex), "a build is of no other engine"
        for name in gone(images.index):
            click.echo(f"gone: {name}: its file is not there any more, `index remove` removes it", err=True)
        kept, needed = bool(images.index.features), fewest(images.index.code_length)
        to_fit = own and kept and is_shipped(made) and len(images) >= needed
        if own and (method or labels) and not to_fit:
            used = "that of the package is used"
            click.echo(f"--method and --labels fit a hash function from {needed} images on: {used}", err=True)
        if kept and not to_fit and has_outgrown(images):
            click.echo(f"it was fitted on far fewer images: `index refit {index}` fits it on these", err=True)
    if to_fit:
        try:
            made = refit(index, method, labels is not None, device)
            _report_fit(index, made)
        except InputError as error:
            if method or labels:
                raise
            click.echo(f"{index} keeps the hash function that was fitted on other photographs: {error}", err=True)
    keep_model(index, made)


def _require_pictures(index: Path, files: Sequence[ListedImage]) -> None:
    """Refuse files of which none is a picture, before anything is loaded.

    Raises:
        InputError: none is; they are named.
    """
    reasons = []
    for row, image in enumerate(files):
        if (reason := reason_unreadable(image.path)) is None:
            return
        reasons.append(SkippedImage(row, image.id, reason))
    print_left_out(reasons)
    raise InputError(
        f"nothing was added to {index}: mend what is left out, or name other images; vectors come by --vectors"
    )


def _encoded(codes: str) -> "CodeFolder":
    from deephash_pipeline.encoding import CodeFolder  # noqa: PLC0415 - its packages are of an extra

    return CodeFolder(codes)


@contextmanager
def _made_or_opened(folder: Path, hasher: BaseHasher, features: bool) -> Iterator[ImageIndex]:
    """Give an index; of one that has not come about nothing is left."""
    new = not (folder / INDEX_FILE).exists()
    with ImageIndex.create_or_open(folder, hasher, features) as images:
        try:
            yield images
        except BaseException:
            if new and not len(images):
                images.close()
                delete_index(folder)
            raise


@index.command("refit")
@click.argument("index", type=FOLDER)
@method_option
@click.option("--labels", type=click.Choice(["folder"]), help="Let images of one folder have near codes.")
@device_option
def refit_command(index: Path, method: str | None, labels: str | None, device: str) -> None:
    """Fit the hash function of INDEX on the features that it keeps, and make its codes anew; no image is read."""
    _report_fit(index, refit(index, method, labels is not None, device))


def _report_fit(folder: Path, hasher: "ImageHasher") -> None:
    click.echo(f"{folder}: {hasher!r}, fitted on {hasher.description.training_images:,} of its images")


@index.command()
@click.argument("index", type=FOLDER)
@click.argument("paths", nargs=-1)
@vectors_options
@click.option("--replace", is_flag=True, help="Let a vector of the same id give way.")
@device_option
def add(index: Path, paths: Sequence[str], device: str, replace: bool, **of_vectors: Any) -> None:
    """Add the images in PATHS, or --vectors, to INDEX."""
    if of_vectors["vectors"] is not None:
        if paths:
            raise InputError("--vectors are added alone: leave out PATHS")
        add_vectors(index, replace, **of_vectors)
        return
    if holds_vectors(index):
        raise InputError(f"{index} has vectors: name a file of them by --vectors")
    refuse_without_vectors({**of_vectors, "replace": replace or None})
    if not paths:
        raise InputError("no PATHS are given: name folders, globs or CSV files of images, or --vectors")
    files, skipped = list_images(paths)
    with ImageIndex.open(index, device=device) as images:
        _report(index, images, add_files(images, files), skipped)


@index.command()
@click.argument("index", type=FOLDER)
@click.argument("ids", nargs=-1, required=True)
@click.option("--missing-ok", is_flag=True, help="Pass over ids that are not there.")
def remove(index: Path, ids: Sequence[str], missing_ok: bool) -> None:
    """Remove the images, or vectors, named IDS from INDEX; files outside it stay."""
    with opened(index, "cpu", read_only=False) as items:
        removed = items.remove(list(map(items.id_of, ids)), missing_ok)
        click.echo(f"{index}: {removed} removed, {len(items)} {'vectors' if items.width else 'images'}")


@index.command()
@click.argument("index", type=FOLDER)
@json_option
def info(index: Path, as_json: bool) -> None:
    """Say what INDEX has."""
    if holds_vectors(index):
        _print_facts(facts_of_vectors(index), as_json)
        return
    with ImageIndex.open(index, read_only=True, device="cpu", runtime="auto") as images:
        about = images.hasher.description
        facts: dict[str, Any] = {
            "images": len(images),
            "hasher": repr(images.hasher),
            "labels": images.labels(),
            **{name: value for name, value in images.index.info().items() if name in FACTS},
            "image_shape": list(about.image_shape),
            "runtime": about.runtime,
            **{f"hasher_{key}": value for key, value in about.code_version.items()},
        }
    _print_facts(facts, as_json)


def _print_facts(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(facts))
        return
    values = {name: value if isinstance(value, list) else [value] for name, value in facts.items()}
    print_columns([(name.replace("_", " "), ", ".join(map(str, several))) for name, several in values.items()])


def _report(
    folder: Path, images: ImageIndex, report: AddedImages, unnamed: Sequence[Any], emptied: bool = False
) -> None:
    there = f", {report.there} there already" if report.there else ""
    changed = f", {len(report.changed)} changed and encoded again" if report.changed else ""
    changed += f", {report.renamed} renamed" if report.renamed else ""
    changed += f", {report.removed} gone and removed" if report.removed else ""
    click.echo(f"{folder}: {report.added} added{there}{changed}, {len(images)} images, {images.hasher!r}")
    print_left_out([*unnamed, *report.skipped])
    if not (report.added or report.there or report.changed or report.renamed or emptied):
        raise InputError(f"nothing was added to {folder}: mend what is left out, or name other images")
