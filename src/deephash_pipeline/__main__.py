"""``python -m deephash_pipeline`` and the ``deephash-pipeline`` command, wherever the package is installed."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import click

from deephash_pipeline.common.errors import InputError, blamed_on
from deephash_pipeline.common.extras import missing
from deephash_pipeline.common.project_folder import project_root, template

WITHOUT_KEDRO = ("duplicates", "index", "pairs", "search", "serve")
"""Commands that work on folders and files alone, not in a project; each is in the module of its name."""
LONG = ("duplicates",)
"""Commands that say at once that they have begun: their imports alone take seconds."""


def main() -> None:
    """Run a command; options without the name of one are those of ``run``."""
    given = sys.argv[1:]
    if given and given[0].startswith("-") and given[0] not in ("--help", "-h", "--version"):
        given = ["run", *given]
    name = given[0] if given else ""
    if name in LONG and not {"-h", "--help"} & {*given}:
        click.echo(f"{name}: loading", err=True)
    try:
        if name == "serve":
            # Where nothing but a service runs there may be neither Kedro nor PyTorch.
            run_alone(name, given[1:])
        else:
            run_with_kedro(name, given)
    except InputError as error:
        click.ClickException(" ".join(str(error).split())).show()
        sys.exit(1)
    except KeyboardInterrupt:
        click.echo("Error: interrupted", err=True)
        sys.exit(130)


def run_with_kedro(name: str, given: Sequence[str]) -> None:
    """Run a command, one of `WITHOUT_KEDRO` also where there is no Kedro."""
    if name == "run" and not {"-h", "--help"} & {*given}:
        # Kedro takes the current directory for the project.
        os.chdir(project_root())
    logging_file = os.environ.setdefault("KEDRO_LOGGING_CONFIG", str(template() / "conf" / "logging.yml"))
    try:
        with blamed_on(logging_file):
            from kedro.framework.project import configure_project  # noqa: PLC0415 - reads the logging configuration

        configure_project(Path(__file__).parent.name)
        from deephash_pipeline.cli.main import cli  # noqa: PLC0415 - Kedro's commands want a configured project
    except ModuleNotFoundError as error:
        if error.name != "kedro" or name not in WITHOUT_KEDRO:
            raise missing(error, "pipeline") from error
        run_alone(name, given[1:])
    else:
        cli(given, prog_name="deephash-pipeline")


def run_alone(name: str, arguments: Sequence[str]) -> None:
    """Run a command of `WITHOUT_KEDRO`."""
    command = getattr(import_module(f"deephash_pipeline.cli.{name}"), name)
    command(arguments, prog_name=f"deephash-pipeline {name}", help_option_names=["-h", "--help"])


if __name__ == "__main__":
    main()
