"""``python -m deephash_pipeline`` and the ``deephash-pipeline`` command, wherever the package is installed."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import missing
from deephash_pipeline.common.project_folder import project_root, template


def main() -> None:
    """Run a command; options without the name of one are those of ``run``."""
    given = sys.argv[1:]
    if given and given[0].startswith("-") and given[0] not in ("--help", "-h", "--version"):
        given = ["run", *given]
    if given and given[0] == "serve":
        # Where nothing but a service runs there may be neither Kedro nor PyTorch.
        serve(given[1:])
        return
    if given and given[0] == "run":
        try:
            # Kedro takes the current directory for the project.
            os.chdir(project_root())
        except InputError as error:
            _end(error)
    os.environ.setdefault("KEDRO_LOGGING_CONFIG", str(template() / "conf" / "logging.yml"))
    try:
        from kedro.framework.project import configure_project  # noqa: PLC0415 - reads the logging configuration

        configure_project(Path(__file__).parent.name)
        from deephash_pipeline.cli.main import cli  # noqa: PLC0415 - Kedro's commands want a configured project
    except ModuleNotFoundError as error:
        _end(missing(error, "pipeline"))
    except KeyboardInterrupt:
        click.echo("Error: interrupted", err=True)
        sys.exit(130)

    cli(given, prog_name="deephash-pipeline")


def serve(arguments: Sequence[str]) -> None:
    """Run ``deephash-pipeline serve``."""
    try:
        from deephash_pipeline.cli import serve as module  # noqa: PLC0415 - see `main`

        module.serve(arguments, prog_name="deephash-pipeline serve")
    except InputError as error:
        _end(error)


def _end(error: InputError) -> NoReturn:
    click.ClickException(" ".join(str(error).split())).show()
    sys.exit(1)


if __name__ == "__main__":
    main()
