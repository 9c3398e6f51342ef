"""Arguments and options that several commands have."""

from pathlib import Path

import click

FOLDER = click.Path(path_type=Path)
device_option = click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N.")
engine_option = click.option(
    "--engine",
    help="Search codes in another engine: postgresql://..., milvus:http://..., or services http://a,http://b.",
)
approximate_option = click.option(
    "--approximate", is_flag=True, help="Use PostgreSQL's HNSW index, which misses some of the nearest."
)
