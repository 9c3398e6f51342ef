"""This project's commands of ``kedro``, and those of ``deephash-pipeline``; what they need is imported late.

Kedro imports this module at every command, also at those that only list names.
"""

import sys
from typing import Any

import click
from kedro.framework.cli.utils import LazyGroup

from deephash_pipeline import __version__
from deephash_pipeline.common.imports import imported_for_good

COMMANDS = (
    *(
        "run",
        "new",
        "methods",
        "hasher",
        "status",
        "encode",
        "index",
        "search",
        "duplicates",
        "pairs",
        "serve",
    ),
    *("export", "export-onnx", "export-huggingface", "log-model"),
)
GUARDED = "deephash_pipeline.cli.guarded"


class LateCommands(LazyGroup):
    """Commands that are imported when they are asked for, with all that stays to the end."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:
        """Import a command."""
        try:
            with imported_for_good():
                return super().get_command(ctx, cmd_name)
        except KeyboardInterrupt:
            # Most of what a command waits for at its beginning are these imports.
            click.echo("Error: interrupted", err=True)
            sys.exit(130)


@click.group(
    cls=LateCommands,
    name="deephash-pipeline",
    context_settings={"help_option_names": ["-h", "--help"]},
    lazy_subcommands={name: f"{GUARDED}.{name.replace('-', '_')}" for name in COMMANDS},
)
@click.version_option(__version__)
def cli() -> None:
    """Short binary codes for images: learn them, measure them, use them."""
