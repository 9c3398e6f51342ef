"""Arguments and options that several commands share, and the index that they name."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from deephash_pipeline.cli.vectors import open_vector_index
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming.coded import CodedItems
from deephash_pipeline.hamming.index_folder import holds_vectors

if TYPE_CHECKING:
    from deephash_pipeline.photographs.stored import AskedRuntime

FOLDER = click.Path(path_type=Path)
FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)
overwrite_option = click.option("--overwrite", is_flag=True, help="Write in the place of files that are there.")
device_option = click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N.")
engine_option = click.option("--engine", help="Search codes in another engine: postgresql://... or milvus:http://...")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
approximate_option = click.option(
    "--approximate", is_flag=True, help="Use PostgreSQL's HNSW index, which misses some of the nearest."
)


def opened(
    folder: Path,
    device: str,
    engine: str | None = None,
    approximate: bool = False,
    read_only: bool = True,
    runtime: "AskedRuntime" = "auto",
) -> CodedItems:
    """Open an index of images or vectors, or the hasher of one of images with codes in another engine."""
    if engine is None:
        if approximate:
            raise InputError("--approximate is for --engine postgresql://...: this index answers exactly")
        if holds_vectors(folder):
            return open_vector_index(folder, read_only)
        # A search of vectors needs nothing of images.
        from deephash_pipeline.photographs import ImageIndex  # noqa: PLC0415

        return ImageIndex.open(folder, read_only, device, runtime)
    if not folder.is_dir():
        raise InputError(f"there is no index {folder}: name the one whose hasher made the codes")
    if holds_vectors(folder):
        raise InputError(f"{folder} has vectors: --engine is for images")
    # A service without another engine needs none of their clients.
    from deephash_pipeline.engines import default_name, open_engine  # noqa: PLC0415
    from deephash_pipeline.photographs import ImageIndex  # noqa: PLC0415

    codes = open_engine(engine, default_name(folder), approximate)
    return ImageIndex.open(folder, True, device, runtime, codes)
