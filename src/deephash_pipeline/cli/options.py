"""Arguments and options that several commands have."""

from pathlib import Path

import click

from deephash_pipeline.common.errors import InputError

HASHER_MARK = b"deephash_pipeline.hasher"
"""In the header of every file that has a hasher."""
FOLDER = click.Path(path_type=Path)
device_option = click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N.")
engine_option = click.option(
    "--engine",
    help="Search codes in another engine: postgresql://... or milvus:http://...",
)
approximate_option = click.option(
    "--approximate", is_flag=True, help="Use PostgreSQL's HNSW index, which misses some of the nearest."
)


def refuse_other_file(output: Path) -> None:
    """Refuse to write a hasher in the place of something else.

    Raises:
        InputError: there is something, and it is no hasher.
    """
    if output.exists() and not (output.is_file() and HASHER_MARK in output.read_bytes()):
        raise InputError(f"{output} is there and is no hasher: name another file")
