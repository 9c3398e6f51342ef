"""``deephash-pipeline export``: the codes of an index to PostgreSQL or Milvus."""

from pathlib import Path

import click

from deephash_pipeline.cli.options import FOLDER
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import count_steps
from deephash_pipeline.engines import default_name, export_index, open_export
from deephash_pipeline.engines.exporting import EXPORTED_AT_ONCE
from deephash_pipeline.engines.postgres import PostgresIndex
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.hamming.index_folder import holds_vectors


@click.command()
@click.argument("index", type=FOLDER)
@click.option(
    "--to",
    "target",
    nargs=2,
    required=True,
    metavar="ENGINE ADDRESS",
    help="postgres and postgresql://user@host/database, or milvus and http://host:19530.",
)
@click.option("--name", help="Of the table or collection; by default that of the index.")
@click.option("--hnsw", is_flag=True, help="Make PostgreSQL's index for approximate searches as well.")
def export(index: Path, target: tuple[str, str], name: str | None, hnsw: bool) -> None:
    """Write the codes and vectors of INDEX into another engine, and check that codes find the same there.

    Run again, it writes the difference; what was broken off goes on.
    """
    kind, address = target
    if hnsw and kind != "postgres":
        raise InputError("--hnsw is for postgres: leave it out")
    with (
        HammingIndex.open(index, read_only=True) as codes,
        open_export(kind, address, name or default_name(index)) as exported,
    ):
        with count_steps("batches", total=-(-len(codes) // EXPORTED_AT_ONCE)) as advance:
            report = export_index(
                codes,
                exported,
                advance=lambda done: advance(f"{done:,} of {len(codes):,} items"),
                vectors=holds_vectors(index),
            )
        if hnsw:
            assert isinstance(exported, PostgresIndex)
            exported.add_hnsw()
    click.echo(
        f"{exported.place}: {report.written} written, {report.deleted} deleted, {report.there} there already; "
        f"{report.queries} queries answered as by {index}"
    )
