"""The commands ``index``, ``search`` and ``serve`` for vectors in place of images."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import ItemId

if TYPE_CHECKING:
    from deephash_pipeline.embeddings import VectorIndex

FACTS = ("code_length", "columns", "segments", "removed", "bytes_on_disk")
MEASURED_K = (10, 100)
EXAMPLE_OF_WHERE = '{"year": {">=": 2020}}'
ADVICE = {"int8": "--rescore float16, ", "none": "--rescore int8, "}


def vectors_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that name a file of vectors, with ids."""
    for option in (
        click.option("--column", help="Column of the Parquet file, or tensor of the safetensors file."),
        click.option("--ids", help="Text file with an id a line, or a column of the Parquet file."),
        click.option(
            "--labels", help="Text file with a label a line, or a column of the Parquet file; of images, `folder`."
        ),
        click.option(
            "--vectors",
            type=click.Path(path_type=Path),
            help="Vectors: a file, .npy, .safetensors or .parquet, or a folder or glob of such.",
        ),
    ):
        command = option(command)
    return command


def open_vector_index(folder: Path, read_only: bool = True) -> "VectorIndex":
    """Open an index of vectors; a service of images alone has none of the packages of hash functions."""
    from deephash_pipeline.embeddings import VectorIndex  # noqa: PLC0415

    return VectorIndex.open(folder, read_only)


def refuse_without_vectors(options: dict[str, Any], remedy: str = "name their file by --vectors") -> None:
    """Refuse options for vectors where there are none."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise InputError(f"--{given[0]} is for vectors: {remedy}")


def build_of_vectors(folder: Path, anew: bool, **options: Any) -> None:
    """Make an index of a file of vectors, and say what to expect of it."""
    source, ids, labels = read_given(options)
    from deephash_pipeline.embeddings import VectorIndex  # noqa: PLC0415 - what is wrong with a file is said before

    names = {"method": "method", "bits": "code_length", "rescore": "rescore", "recall": "recall"}
    chosen = {name: options[given] for given, name in names.items() if options.get(given) is not None}
    if options.get("queries") is not None:
        from deephash_pipeline.embeddings import open_vectors  # noqa: PLC0415

        chosen["queries"] = open_vectors(options["queries"], options.get("column"))
    for column in getattr(source, "left_out", ()):
        click.echo(f"left out: column {column}: it is no metadata, which are single values", err=True)
    with VectorIndex.build(folder, source, ids, labels=labels, anew=anew, **chosen) as index:
        click.echo(f"{folder}: {len(index):,} vectors of {source.width} numbers, {index!r}")
        for k in MEASURED_K:
            click.echo(expectation(index, k))
        if (index.expected(10).recall or 1) < index.description.measured.target:
            rescore = ADVICE.get(index.description.rescore, "")
            click.echo(f"warning: that is less than --recall: give {rescore}more --bits, or another --method", err=True)


def add_vectors(folder: Path, replace: bool, **options: Any) -> None:
    """Add a file of vectors to an index; without ids their rows are numbered on."""
    source, ids, labels = read_given(options)
    if replace and ids is None:
        raise InputError("--replace is for vectors of known ids: name these by --ids")
    with open_vector_index(folder, read_only=False) as index:
        # All or none: one addition.
        blocks = list(source.blocks(source.count))
        metadata = {
            name: [*(value for block in blocks for value in block.metadata[name])] for name in blocks[0].metadata
        }
        names = None if ids is None else [index.id_of(name) if isinstance(name, str) else name for name in ids]
        index.add(np.concatenate([block.vectors for block in blocks]), names, metadata, labels=labels, replace=replace)
        click.echo(f"{folder}: {source.count} added, {len(index)} vectors")


def read_where(text: str | None) -> dict[str, Any] | None:
    """Conditions that are written in JSON.

    Raises:
        InputError: it is no JSON, or no object of it.
    """
    if text is None:
        return None
    try:
        where = json.loads(text)
    except ValueError:
        where = None
    if not isinstance(where, dict):
        raise InputError(f"--where {text!r:.80}: give conditions in JSON, such as '{EXAMPLE_OF_WHERE}'")
    return where


def read_given(options: dict[str, Any]) -> tuple[Any, Sequence[ItemId] | None, list[str] | None]:
    """Open the file of vectors that options name.

    Raises:
        InputError: it, or that of ids or labels, cannot be read.
    """
    from deephash_pipeline.embeddings import ArrayVectors, open_vectors  # noqa: PLC0415

    ids, labels = options.get("ids"), options.get("labels")
    source = open_vectors(options["vectors"], options.get("column"), ids)
    if not isinstance(source, ArrayVectors) and source.has_columns:
        return source, source.ids, None if labels is None else source.values(labels)
    given_ids, given_labels = (None if name is None else _lines(Path(name)) for name in (ids, labels))
    return source, given_ids, given_labels


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read ({error}): give a text file with a line for each vector") from error


def expectation(index: "VectorIndex", k: int, recall: float | None = None, conditions: bool = False) -> str:
    """What to expect of a search for k answers, in a line."""
    expected, measured = index.expected(k, recall, conditions), index.description.measured
    how = f"{expected.oversampling} candidates an answer" if index.index.features else "codes alone"
    if expected.recall is None:
        why = "under conditions" if conditions else "of so many answers" if measured.of else "of too few vectors"
        return f"recall@{k}: not measured {why}; {how}"
    of = "given queries" if measured.given else "vectors held out, for queries like them"
    return f"recall@{k}: {expected.recall:.3f} expected ({how}; measured with {measured.queries} {of})"


def facts_of_vectors(folder: Path) -> dict[str, Any]:
    """What ``index info`` says."""
    with open_vector_index(folder) as index:
        about, measured = index.description, index.description.measured
        return {
            "vectors": len(index),
            "width": about.width,
            "method": about.method,
            "rescore": about.rescore,
            "labels": index.labels(),
            **{name: value for name, value in index.index.info().items() if name in FACTS},
            "recall": [expectation(index, k) for k in measured.of],
        }


def found_vectors(
    folder: Path,
    queries: Path | None,
    column: str | None,
    name: str | None,
    k: int,
    labels: Sequence[str],
    recall: float | None,
    conditions: str | None = None,
) -> tuple[list[dict[str, Any]], str]:
    """Answers to each query, and what to expect of them."""
    from deephash_pipeline.embeddings import open_vectors  # noqa: PLC0415

    where = read_where(conditions)

    if (queries is None) == (name is None):
        raise InputError(f"{folder} has vectors: give either --queries, a file of them, or --id of one of the index")
    if queries is None:
        refuse_without_vectors({"column": column})
    with open_vector_index(folder) as index:
        if labels:
            if "label" in map(str.lower, where or {}):
                raise InputError("--where has a condition on `label`: leave that or --label out")
            where = {**(where or {}), **index.labelled(labels)}
        if queries is None:
            answers = index.search_by_id(index.id_of(str(name)), k, where, recall)
        else:
            source = open_vectors(queries, column)
            answers = index.search(source.take(np.arange(source.count)), k, where, recall)
        rows = []
        for query, found in enumerate(answers.ids.tolist()):
            for place, item in enumerate(index.index.items(found)):
                row: dict[str, Any] = {"query": query, "id": item.id, "distance": int(answers.distances[query, place])}
                if answers.scores is not None:
                    row["cosine"] = round(float(answers.scores[query, place]), 4)
                # First, and not hidden by metadata of the same names.
                rows.append({**row, **item.metadata, **row})
        if index.has_warned:
            return rows, f"recall@{k}: not measured with such queries"
        return rows, expectation(index, k, recall, bool(where))
