"""``python -m deephash_pipeline`` and the ``deephash-pipeline`` command, wherever the package is installed."""

import logging
import os
import sys

import click

from deephash_pipeline.cli.commands import COMMANDS
from deephash_pipeline.cli.main import cli
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.openmp import wait_asleep
from deephash_pipeline.common.project_folder import project_root

LONG = ("duplicates",)
"""Commands that say at once that they have begun: their imports alone take seconds."""
HELP = {"-h", "--help"}


def main() -> None:
    """Run a command; options without the name of one are those of ``run``."""
    wait_asleep()
    given = sys.argv[1:]
    if given and given[0].startswith("-") and given[0] not in (*HELP, "--version"):
        given = ["run", *given]
    name = given[0] if given else ""
    wants_help = bool(HELP & {*given})
    if name in LONG and not wants_help:
        click.echo(f"{name}: loading", err=True)
    try:
        if name in COMMANDS and COMMANDS[name].in_project:
            if name == "run" and not wants_help:
                # Kedro takes the current directory for the project.
                os.chdir(project_root())
            from deephash_pipeline.cli.with_kedro import configure_kedro  # noqa: PLC0415 - other commands need none

            configure_kedro()
        else:
            logging.basicConfig(format="%(message)s")
            logging.getLogger(__package__).setLevel(logging.INFO)
        cli(given, prog_name="deephash-pipeline")
    except InputError as error:
        click.ClickException(" ".join(str(error).split())).show()
        sys.exit(1)
    except KeyboardInterrupt:
        click.echo("Error: interrupted", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
