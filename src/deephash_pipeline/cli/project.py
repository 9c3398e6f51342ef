"""``deephash-pipeline new`` and ``deephash-pipeline hasher``: a project to run in, and a model to take out of one."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from kedro import __version__ as kedro_version
from kedro.framework.session import KedroSession
from kedro.io import DatasetError
from kedro.pipeline import Pipeline

from deephash_pipeline.cli.project_faults import refuse_characters
from deephash_pipeline.cli.provenance import catalog_of
from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.outputs import check_outputs
from deephash_pipeline.common.project_folder import project_root, template
from deephash_pipeline.common.writing import cannot_write
from deephash_pipeline.deephash import ImageHasher
from deephash_pipeline.hashers.files import is_hasher
from deephash_pipeline.pipelines.grid import ALL_CODE_LENGTHS, METHODS, cells
from deephash_pipeline.pipelines.shared.hashers import hasher_of_cell, parts_of_hasher
from deephash_pipeline.project.environments import environments
from deephash_pipeline.project.freshness.mending import mending_command

PYPROJECT = f"""\
[tool.kedro]
package_name = "deephash_pipeline"
project_name = "deephash_pipeline"
kedro_init_version = "{kedro_version}"
source_dir = "."
"""


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
def new(directory: Path) -> None:
    """Make a project to run in: conf/, .telemetry and an empty data/."""
    refuse_characters(directory.absolute())
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InputError(f"{directory} is there and is not empty: name another folder")
    was_there = directory.exists()
    try:
        shutil.copytree(template() / "conf", directory / "conf")
        shutil.copy(template() / ".telemetry", directory)
        (directory / "data").mkdir()
        (directory / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    except OSError as error:
        # It was empty, so all that is there is ours.
        for made in (directory / "conf", directory / "data"):
            shutil.rmtree(made, ignore_errors=True)
        with suppress(OSError):
            for name in (".telemetry", "pyproject.toml"):
                (directory / name).unlink(missing_ok=True)
            if not was_there:
                directory.rmdir()
        raise cannot_write(directory, error) from error
    click.echo(f"{directory} is a project: cd {directory} && deephash-pipeline run")


@click.command()
@click.argument("benchmark")
@click.argument("cell")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--half", is_flag=True, help="Store the network's weights in half precision.")
def hasher(benchmark: str, cell: str, output: Path, half: bool) -> None:
    """Write the hasher of a CELL such as itq.b48 of a finished run of BENCHMARK to one file."""
    check_outputs([output], ours=[is_hasher])
    made = hasher_of_run(benchmark, cell)
    made.save(output, half)
    click.echo(f"{output}: {made!r}, {output.stat().st_size / 1e6:.1f} MB")
    click.echo(f"trained on {made.description.trained_on}")


def hasher_of_run(benchmark: str, cell: str) -> ImageHasher:
    """Load the hasher of a cell of a finished run.

    Raises:
        InputError: there is no project here, no such benchmark or cell, or it has not been run.
    """
    wanted = parsed_cell(cell)
    catalog = run_catalog(benchmark)
    try:
        return hasher_of_cell(catalog, wanted)
    except DatasetError as error:
        own, *shared = parts_of_hasher(wanted)
        # Where all is there, something is damaged, maybe on the way to the cell's own.
        lacking = [name for name in (own, *shared) if not catalog.exists(name)] or [own]
        command = mending_command(lacking, Pipeline([]), catalog, {"env": benchmark}, None)
        raise InputError(
            f"{cell} of {benchmark} has not been run, {str(error).partition(':')[0]}: `{command}` in {project_root()}"
        ) from error


def parsed_cell(name: str) -> Cell:
    """Find a cell of the grid by its name.

    Raises:
        InputError: there is none of this name.
    """
    there = {cell.namespace: cell for cell in cells(code_lengths=ALL_CODE_LENGTHS)}
    if name not in there:
        method = name.partition(".")[0]
        own = [known for known in there if known.partition(".")[0] == method]
        remedy = f"there are {', '.join(own)}" if own else f"methods are {', '.join(METHODS)}; write one as itq.b48"
        raise InputError(f"unknown cell `{name}`: {remedy}")
    return there[name]


def run_catalog(benchmark: str) -> Any:
    """Read the catalog of a benchmark, in the project around the current directory.

    Raises:
        InputError: there is no project here, or it has no such benchmark.
    """
    project = project_root()
    if benchmark not in (known := environments(project / "conf")):
        raise InputError(f"unknown benchmark `{benchmark}`: conf/ has {', '.join(known)}")
    with KedroSession.create(project, env=benchmark) as session:
        return catalog_of(session)
