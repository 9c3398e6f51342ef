"""Arguments and options that several commands have."""

from pathlib import Path

import click

FOLDER = click.Path(path_type=Path)
device_option = click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or cuda:N.")
