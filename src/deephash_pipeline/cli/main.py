"""This project's commands of ``kedro``, and those of ``deephash-pipeline``; what they need is imported late.

Kedro imports this module at every command, also at those that only list names.
"""

import sys
from importlib import import_module
from typing import Any

import click
from kedro.framework.cli.utils import LazyGroup

from deephash_pipeline import __version__
from deephash_pipeline.common.imports import imported_for_good

COMMANDS = {
    "run": "run.run",
    "new": "project.new",
    "methods": "methods.methods",
    "parameters": "parameters.parameters",
    "hasher": "project.hasher",
    "status": "provenance.status",
    "encode": "encode.encode",
    "index": "index.index",
    "search": "search.search",
    "duplicates": "duplicates.duplicates",
    "pairs": "pairs.pairs",
    "serve": "serve.serve",
    "export": "export.export",
    "export-onnx": "package.export_onnx",
    "export-huggingface": "package.export_huggingface",
    "log-model": "package.log_model",
}
"""Name -> module beside this one, and name in it."""


class LateCommands(LazyGroup):
    """Commands that are imported when they are asked for, with all that stays to the end."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:
        """Import a command, and have it report bad input in one line."""
        try:
            with imported_for_good():
                command = super().get_command(ctx, cmd_name)
                return command and import_module("deephash_pipeline.cli.refusals").guarded(command)
        except KeyboardInterrupt:
            # Most of what a command waits for at its beginning are these imports.
            click.echo("Error: interrupted", err=True)
            sys.exit(130)


@click.group(
    cls=LateCommands,
    name="deephash-pipeline",
    context_settings={"help_option_names": ["-h", "--help"]},
    lazy_subcommands={name: f"deephash_pipeline.cli.{place}" for name, place in COMMANDS.items()},
)
@click.version_option(__version__)
def cli() -> None:
    """Short binary codes for images: learn them, measure them, use them."""
