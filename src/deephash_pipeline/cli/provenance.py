"""``deephash-pipeline status``, and the pipelines and the catalog that commands look at."""

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import click
import yaml  # type: ignore[import-untyped]
from kedro.framework.cli.project import run as kedro_run
from kedro.framework.cli.utils import split_string
from kedro.framework.project import pipelines
from kedro.framework.session import KedroSession
from kedro.pipeline import Pipeline
from kedro.pipeline.pipeline import OutputNotUniqueError

from deephash_pipeline.cli.project_faults import enter_project
from deephash_pipeline.cli.refusals import of_option
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.project_folder import project_root
from deephash_pipeline.pipelines.names import INDEXING
from deephash_pipeline.project.checks import check_run_parameters
from deephash_pipeline.project.freshness import states
from deephash_pipeline.project.freshness.graph import Catalog
from deephash_pipeline.project.other_numbers import refuse_other_numbers
from deephash_pipeline.provenance.states import StateKind, summarised

ENV_HELP = "Environment of conf/, such as mnist; digits by default."


split_as_kedro: Any = next(option.callback for option in kedro_run.params if option.name == "params")
"""How ``kedro run`` takes ``--params`` apart."""


@of_option
def split_params(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Take ``--params`` apart as Kedro does.

    Raises:
        ClickException: a value is no YAML or a list, or would be taken for another number, or a name is there twice.
    """
    given = set()
    for item in split_string(context, parameter, value) if isinstance(value, str) else ():
        name, _, text = item.partition("=")
        if text.startswith("[") and not text.endswith("]"):
            raise InputError(
                f"--params={item}: commas end a value: write a list into conf/<environment>/parameters.yml"
            )
        refuse_other_numbers(text, f"--params={item}")
        if name in given:
            raise InputError(f"--params: `{name}` is there twice: give one value")
        given.add(name)
    try:
        return split_as_kedro(context, parameter, value)
    except yaml.YAMLError as error:
        raise InputError(f"--params={value}: that is no plain YAML: leave tags out") from error


@click.command()
@click.option("--env", "-e", help=ENV_HELP)
@click.option("--pipelines", "names", default="full", callback=split_string, help="Pipelines to look at.")
@click.option("--params", type=click.UNPROCESSED, default="", help="As those of the run.", callback=split_params)
def status(env: str | None, names: list[str], params: dict[str, Any]) -> None:
    """Print what is fresh, stale, missing, damaged or without a manifest."""
    enter_project()
    pipeline = joined_pipelines(names)
    catalog = open_catalog(env, params)
    # None is needed, but what there is should be known.
    indexes = [node for node in pipelines[INDEXING].nodes if catalog.exists(node.outputs[0])]
    found = states(pipeline + Pipeline(indexes), catalog)
    counts = Counter(state.kind for state in found.values())
    click.echo(", ".join(f"{counts[kind]} {kind}" for kind in StateKind if counts[kind]) or "nothing is made by it")
    for kind in StateKind:
        faults = [(name, state) for name, state in found.items() if state.kind is kind is not StateKind.FRESH]
        for line in summarised(faults, shown=len(faults)):
            click.echo(f"{kind}: {line}")


def joined_pipelines(names: Sequence[str]) -> Pipeline:
    """Join pipelines by name.

    Raises:
        InputError: there is none of a name, or nodes of one name read different cells in two of them.
    """
    unknown = [name for name in names if name not in pipelines]
    if unknown:
        raise InputError(f"unknown pipeline `{unknown[0]}`: choose among {', '.join(pipelines)}")
    try:
        joint: Pipeline = reduce(operator.add, [pipelines[name] for name in names])
    except (ValueError, OutputNotUniqueError) as error:
        # Nodes of one name, or of one output, that read different cells.
        raise InputError(f"pipelines {', '.join(names)} join different cells: run each by itself") from error
    return joint


def open_catalog(
    env: str | None,
    parameters: Mapping[str, Any] | None = None,
    conf_source: str | None = None,
) -> Catalog:
    """Read the catalog of the project in the working directory, with its parameters.

    Args:
        env: environment; None for the one that runs without a name.
        parameters: parameters beside those of the environment.
        conf_source: folder of the configuration; None for the project's.

    Raises:
        InputError: a parameter cannot be used.
    """
    created: Any = KedroSession.create(env=env, runtime_params=dict(parameters or {}), conf_source=conf_source)
    with created as session:
        catalog = catalog_of(session)
    check_run_parameters(catalog, project_root())
    return catalog


def catalog_of(session: Any) -> Catalog:
    """Give the catalog of a session, see `open_catalog`."""
    catalog: Catalog = session.load_context().catalog
    return catalog
