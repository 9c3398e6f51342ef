"""Command line of the evaluation: `python -m deephash_pipeline.retrieval codes.npz`, for codes of any toolbox."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Column, Table

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval.by_hits import average_precision_at_by_hits
from deephash_pipeline.retrieval.code_files import LabelledCodes, read_labelled_codes
from deephash_pipeline.retrieval.counting import count_distances, count_shared_labels
from deephash_pipeline.retrieval.curves import precision_recall_by_radius, precision_recall_by_rank
from deephash_pipeline.retrieval.graded import GRADED_RANK, graded_metrics
from deephash_pipeline.retrieval.histograms import DistanceHistograms
from deephash_pipeline.retrieval.metrics import (
    average_precision_at,
    precision_at,
    precision_within_radius,
    recall_at,
    retrieval_metrics,
)
from deephash_pipeline.retrieval.stable_order import stable_order_average_precision

POINTS_BY_RANK = 200
HELP = """Evaluate binary codes by Hamming distance: exact metrics, whatever the order of tied items.

\b
CODES is an .npz file, as numpy.savez writes it, with these arrays:
  query_codes      (queries, K) bits: bool, 0/1 or -1/+1 of any type;
                   or packed bytes: uint8 (queries, ceil(K / 8))
  query_labels     (queries,) class numbers: integers;
                   or (queries, classes): bool or 0/1, any number per item
  database_codes   (items, K), as query_codes
  database_labels  (items,) or (items, classes), as query_labels
  code_length      K; needed for packed bytes only

An item is relevant to a query if the two share a class. Where items have several,
NDCG, ACG and WAP at rank 100, and at those of --at, grade relevance by the number
shared. The codes.npz of a run,
data/07_model_output/<benchmark>/<method>/b<bits>/codes.npz, is read with
--labels data/02_intermediate/<benchmark>.
"""


@click.command(help=HELP)
@click.argument("codes", type=click.Path(path_type=Path))
@click.option("--labels", type=click.Path(path_type=Path), metavar="DIR", help="Labels of a codes.npz that a run made.")
@click.option("--at", "ranks", type=int, multiple=True, metavar="K", help="Add mAP, precision and recall at rank K.")
@click.option("--radius", "radii", type=int, multiple=True, metavar="R", help="Add the lookup within R bits.")
@click.option("--stable-order", is_flag=True, help="Add mAP with tied items in the order of the file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="Write the metrics as JSON.")
@click.option("--curves", type=click.Path(path_type=Path), metavar="FILE", help="Write precision and recall as CSV.")
def main(
    codes: Path,
    labels: Path | None,
    ranks: tuple[int, ...],
    radii: tuple[int, ...],
    stable_order: bool,
    as_json: bool,
    output: Path | None,
    curves: Path | None,
) -> None:
    """Print the metrics of a file of codes and write what is asked for; bad input ends in one line."""
    try:
        check_paths(codes, [path for path in (output, curves) if path])
        labelled = read_labelled_codes(codes, labels)
        several = labelled.query_labels.ndim == 2
        graded = count_shared_labels(*labelled) if several else None
        histograms = graded.distances if graded else count_distances(*labelled)
        metrics = all_metrics(labelled, histograms, ranks, radii, stable_order)
        if graded:
            metrics |= {
                name: value for k in sorted({GRADED_RANK, *ranks}) for name, value in graded_metrics(graded, k).items()
            }
        document = json.dumps({name: None if math.isnan(value) else value for name, value in metrics.items()}, indent=2)
        contents = {output: f"{document}\n", curves: curves_as_csv(histograms)}
        write_files({path: content for path, content in contents.items() if path})
    except InputError as error:
        raise click.ClickException(" ".join(str(error).split())) from error
    if as_json:
        click.echo(document)
    else:
        table = Table("metric", Column("value", justify="right"))
        for name, value in metrics.items():
            table.add_row(name, f"{value:.4f}" if isinstance(value, float) else f"{value:,}")
        Console().print(table)


def all_metrics(
    codes: LabelledCodes, histograms: DistanceHistograms, ranks: Sequence[int], radii: Sequence[int], stable_order: bool
) -> dict[str, float | int]:
    """Every metric by name: of `retrieval_metrics`, those asked for, and of equal codes: all items at one distance."""

    def mean(values: NDArray[Any]) -> float:
        evaluated = values[histograms.relevant_items > 0]
        return float(evaluated.mean()) if len(evaluated) else math.nan

    metrics = {"code_length": codes.code_length, **retrieval_metrics(histograms)}
    for k in ranks:
        metrics[f"mean_average_precision_at_{k}"] = mean(average_precision_at(histograms, k))
        metrics[f"mean_average_precision_at_{k}_by_hits"] = mean(average_precision_at_by_hits(histograms, k))
        metrics[f"precision_at_{k}"] = mean(precision_at(histograms, k))
        metrics[f"recall_at_{k}"] = mean(recall_at(histograms, k))
    for radius in radii:
        precision, failed = precision_within_radius(histograms, radius)
        metrics[f"precision_within_radius_{radius}"] = mean(precision)
        metrics[f"lookup_failure_rate_radius_{radius}"] = mean(failed)
    if stable_order:
        metrics["mean_average_precision_stable_order"] = mean(stable_order_average_precision(codes))
    equal = DistanceHistograms(histograms.all.sum(axis=1, keepdims=True), histograms.relevant_items[:, None])
    return {**metrics, "chance_level": retrieval_metrics(equal)["mean_average_precision"]}


def curves_as_csv(histograms: DistanceHistograms) -> str:
    """Precision and recall by radius and by rank, a row for each point; nan where one is undefined."""
    ranks = np.unique(np.geomspace(1, histograms.database_size, POINTS_BY_RANK).round().astype(np.int64))
    curves = {"radius": precision_recall_by_radius(histograms), "rank": precision_recall_by_rank(histograms, ranks)}
    rows = ["kind,point,precision,recall"]
    for kind, curve in curves.items():
        for point, precision, recall in zip(curve.point, curve.precision, curve.recall, strict=True):
            rows.append(f"{kind},{point},{precision},{recall}")
    return "\n".join(rows) + "\n"


def check_paths(codes: Path, outputs: Sequence[Path]) -> None:
    """Raise InputError before anything is counted if a file could not be written, or would replace another."""
    for path in outputs:
        if not path.parent.is_dir() or (path.exists() and not path.is_file()):
            raise InputError(f"{path} cannot be written; name a file in a folder that is there.")
    if len({path.resolve() for path in (codes, *outputs)}) <= len(outputs):
        raise InputError("CODES, --output and --curves must be different files; name another one.")


def write_files(contents: Mapping[Path, str]) -> None:
    """Write all files under temporary names, then rename them: a run that fails or is killed leaves none by halves."""
    temporaries = {path: path.with_name(f".{path.name}.{os.getpid()}") for path in contents}
    try:
        for path, temporary in temporaries.items():
            temporary.write_text(contents[path], encoding="utf-8", newline="")
            with temporary.open("r+b") as written:
                os.fsync(written)
        for path, temporary in temporaries.items():
            temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}; name another file.") from error
    finally:
        for temporary in temporaries.values():
            with suppress(OSError):
                temporary.unlink()


if __name__ == "__main__":
    main()
