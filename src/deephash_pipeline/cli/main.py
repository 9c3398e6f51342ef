"""This project's commands of ``kedro``, and those of ``deephash-pipeline``; what they need is imported late.

Kedro imports this module at every command, also at those that only list names.
"""

import sys
from importlib import import_module
from typing import Any

import click

from deephash_pipeline import __version__
from deephash_pipeline.cli.commands import COMMANDS
from deephash_pipeline.cli.refusals import guarded
from deephash_pipeline.common.extras import missing
from deephash_pipeline.common.imports import imported_for_good


class LateCommands(click.Group):
    """Commands that are imported when they are asked for, with all that stays to the end."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:
        """Import a command, and have it report bad input in one line."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].place.partition(".")
        try:
            with imported_for_good():
                return guarded(getattr(import_module(f"deephash_pipeline.cli.{module}"), name))
        except ModuleNotFoundError as error:
            raise missing(error, "pipeline") from error
        except KeyboardInterrupt:
            # Most of what a command waits for at its beginning are these imports.
            click.echo("Error: interrupted", err=True)
            sys.exit(130)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands, none of which is imported."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.summary) for name, command in COMMANDS.items()])


@click.group(cls=LateCommands, name="deephash-pipeline", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def cli() -> None:
    """Short binary codes for images: learn them, measure them, use them."""
