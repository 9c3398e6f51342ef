"""``status``, and a ``run`` that skips what is up to date."""

import functools
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import click
from kedro.framework.cli.utils import split_string
from kedro.framework.session import KedroSession
from kedro.pipeline import Pipeline

from deephash_pipeline.cli.refusals import joined, split_params
from deephash_pipeline.common.cell import FIELD, FIELD_AT_A_GLANCE, FULL_AT_A_GLANCE, LONG_CODES
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.project_folder import project_root
from deephash_pipeline.project.checks import SoundRun
from deephash_pipeline.project.freshness import POLICY, ProjectGraph, states, waiting_nodes
from deephash_pipeline.project.freshness.graph import Catalog
from deephash_pipeline.project.hooks import ResultTable
from deephash_pipeline.project.runners import RUNNERS
from deephash_pipeline.project.runners.schedule import count_cores
from deephash_pipeline.provenance.lock import RunLock
from deephash_pipeline.provenance.states import Kind, summarised

logger = logging.getLogger(__name__)

WHOLE = {"__default__", "full", FULL_AT_A_GLANCE, FIELD, FIELD_AT_A_GLANCE, LONG_CODES, "without_labels"}
"""Pipelines that make all they need from raw images."""

NARROWING = (
    "tags",
    "node_names",
    "from_nodes",
    "to_nodes",
    "from_inputs",
    "to_outputs",
    "load_versions",
    "namespaces",
    "only_missing_outputs",
)
"""Options of Kedro's ``run`` that name the nodes to run: then they are run."""

INDEXING = "indexing"
"""The pipeline that makes indexes of cells."""

OURS = "deephash_pipeline.project.runners."
"""Where the runners are that skip what is up to date."""

SHOWN_DIGITS = 8

ENV_HELP = "Benchmark: a folder of conf/; digits by default."
RUN_OPTIONS = [
    click.Option(
        ["--stale"],
        type=click.Choice(["refuse", "allow"]),
        default="refuse",
        show_default=True,
        help="What to do if the run would read artefacts that other parameters, inputs or code have made.",
    ),
    click.Option(
        ["--force"],
        is_flag=True,
        help="Run all nodes, also those that are up to date, and train anew.",
    ),
    click.Option(
        ["--workers"],
        type=click.IntRange(min=1),
        envvar="DEEPHASH_WORKERS",
        show_envvar=True,
        help="How many nodes run side by side, one for each core by default; the results are the same.",
    ),
    click.Option(
        ["--on-error"],
        type=click.Choice(["continue", "stop"]),
        default="continue",
        show_default=True,
        help="Whether nodes still run that do not need what a failed one would have made.",
    ),
]


def skipping_what_is_up_to_date(command: Callable[..., Any]) -> Callable[..., Any]:
    """Have ``run`` take `RUN_OPTIONS`, and make of a whole pipeline only what is not up to date."""

    @functools.wraps(command)
    def wrapped(**options: Any) -> Any:
        POLICY.stale_allowed = options.pop("stale", "refuse") == "allow"
        POLICY.forced = options.pop("force", False)
        workers, on_error = options.pop("workers", None), options.pop("on_error", "continue")
        whole = set(options["pipelines"]) <= WHOLE
        runner = options.get("runner") or ("ParallelRunner" if (workers or count_cores()) > 1 else "SequentialRunner")
        runner = RUNNERS.get(runner, runner)
        if not runner.startswith(OURS):
            if workers:
                raise InputError(f"--workers is for the runners of this project, not for {runner}: leave it out")
            return command(**options)
        skipping = not POLICY.forced and whole and not any(options.get(name) for name in NARROWING)
        if skipping and _is_up_to_date(options):
            return None
        given = {"workers": workers, "on_error": on_error, "skipping": skipping}
        parameters = {**given, **(options.get("runner_params") or {})}
        return command(**{**options, "runner": runner, "runner_params": parameters})

    return wrapped


def _is_up_to_date(options: Mapping[str, Any]) -> bool:
    """Say whether a run would do nothing; then show what it would have shown."""
    names = options["pipelines"]
    catalog = open_catalog(options.get("env"), options.get("params"), options.get("conf_source"), names)
    pipeline = joined(names)
    graph = ProjectGraph(pipeline.nodes, catalog)
    # All was made, but temporary files may be left, and MLflow shows the run as at work: a run of no nodes ends that.
    was_killed = graph.benchmark_folder is not None and RunLock(graph.benchmark_folder).is_left
    if was_killed or any(waiting_nodes(graph, POLICY.stale_allowed)):
        return False
    logger.info("everything is up to date; --force makes it again")
    ResultTable().after_pipeline_run(pipeline=pipeline, catalog=catalog, run_params={"env": options.get("env")})
    return True


env_option = click.option("--env", "-e", help=ENV_HELP)
params_option = click.option(
    "--params", type=click.UNPROCESSED, default="", help="As those of the run.", callback=split_params
)


@click.command()
@env_option
@click.option("--pipelines", "names", default="full", callback=split_string, help="Pipelines to look at.")
@params_option
def status(env: str | None, names: list[str], params: dict[str, Any]) -> None:
    """Print what is fresh, stale, missing, damaged or without a manifest."""
    pipeline = joined(names)
    catalog = open_catalog(env, params, names=names)
    # None is needed, but what there is should be known.
    indexes = [node for node in joined([INDEXING]).nodes if catalog.exists(node.outputs[0])]
    found = states(pipeline + Pipeline(indexes), catalog)
    counts = Counter(state.kind for state in found.values())
    click.echo(", ".join(f"{counts[kind]} {kind}" for kind in Kind if counts[kind]) or "nothing is made by it")
    for kind in Kind:
        faults = [(name, state) for name, state in found.items() if state.kind is kind is not Kind.FRESH]
        for line in summarised(faults, shown=len(faults)):
            click.echo(f"{kind}: {line}")


def open_catalog(
    env: str | None,
    parameters: Mapping[str, Any] | None = None,
    conf_source: str | None = None,
    names: Iterable[str] = ("full",),
) -> Catalog:
    """Read the catalog of the project in the working directory, with its parameters.

    Args:
        env: environment; None for the one that runs without a name.
        parameters: parameters beside those of the environment.
        conf_source: folder of the configuration; None for the project's.
        names: names of the pipelines whose nodes say which types parameters have.

    Raises:
        InputError: a parameter cannot be used.
    """
    created: Any = KedroSession.create(env=env, runtime_params=dict(parameters or {}), conf_source=conf_source)
    with created as session:
        catalog = catalog_of(session, names)
    SoundRun().check_parameters(catalog, project_root())
    return catalog


def catalog_of(session: Any, names: Iterable[str] = ("full",)) -> Catalog:
    """Give the catalog of a session, see `open_catalog`."""
    context = session.load_context()
    # As `KedroSession.run` does: else every pipeline there is would be made, to look at the types that it expects.
    context._pipelines_to_validate = list(names)
    catalog: Catalog = context.catalog
    return catalog
