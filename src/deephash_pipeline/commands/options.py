"""Arguments and options that several commands have."""

from pathlib import Path

import click

FOLDER = click.Path(path_type=Path)
device_option = click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N.")
engine_option = click.option(
    "--engine", help="Ask codes elsewhere: postgresql://..., milvus:http://..., or services http://a,http://b."
)
approximate_option = click.option("--approximate", is_flag=True, help="Search PostgreSQL by HNSW: answers are missed.")
