"""``deephash-pipeline run``: Kedro's, with more options; of what is selected it skips what is up to date."""

import copy
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from joblib import cpu_count
from kedro.framework.cli.project import run as kedro_run
from kedro.framework.project import pipelines
from kedro.pipeline import Pipeline
from omegaconf import OmegaConf

from deephash_pipeline.cli.project_faults import enter_project
from deephash_pipeline.cli.provenance import ENV_HELP, joined_pipelines, open_catalog, split_params
from deephash_pipeline.cli.refusals import of_option
from deephash_pipeline.common.errors import InputError, blamed_on
from deephash_pipeline.pipelines.grid import INDEXED
from deephash_pipeline.pipelines.names import FIELD, FIELD_AT_A_GLANCE, FULL_AT_A_GLANCE, INDEXING, LONG_CODES
from deephash_pipeline.project.checks import refuse_versions
from deephash_pipeline.project.freshness import ProjectGraph, nodes_to_run
from deephash_pipeline.project.hooks import ResultTable
from deephash_pipeline.project.other_numbers import refuse_other_numbers
from deephash_pipeline.project.policy import Policy, with_policy
from deephash_pipeline.project.runners import RUNNERS
from deephash_pipeline.provenance.lock import RunLock

logger = logging.getLogger(__name__)

WHOLE_PIPELINES = {"__default__", "full", FULL_AT_A_GLANCE, FIELD, FIELD_AT_A_GLANCE, LONG_CODES, "without_labels"}
"""Pipelines that make all they need from raw images."""

FILTERS = ("tags", "from_nodes", "to_nodes", "node_names", "from_inputs", "to_outputs")
"""Options of Kedro's ``run``, and arguments of `Pipeline.filter`."""

NARROWING = (*FILTERS, "namespaces")
"""Options of Kedro's ``run`` that name the nodes to run."""

OPTION_HELP = {
    "env": ENV_HELP,
    "runner": "ParallelRunner, the default on several cores, SequentialRunner or "
    "deephash_pipeline.project.runners.RayRunner.",
}


@of_option
def read_options(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Take options from a file, ``--config``, as Kedro does.

    Raises:
        ClickException: it has none, or others than a run has.
    """
    if not value:
        return value
    with blamed_on(value, f"write options of a run as YAML, below `{context.info_name}:`"):
        text = Path(value).read_text(encoding="utf-8")
        content: Any = OmegaConf.to_container(OmegaConf.load(value))
        given = {**content[context.info_name]}
    refuse_other_numbers(text, value)
    known = [option.name for option in context.command.params if option.name not in (None, parameter.name)]
    if unknown := [name for name in given if name not in known]:
        raise InputError(f"{value}: a run has no option `{unknown[0]}`: choose among {', '.join(map(str, known))}")
    context.default_map = {**(context.default_map or {}), **given}
    return value


CALLBACKS = {"params": split_params, "config": read_options}


@click.command(help=kedro_run.help)
@click.option(
    "--stale",
    type=click.Choice(["refuse", "allow"]),
    default="refuse",
    show_default=True,
    help="What to do if the run would read artefacts that other parameters, inputs or code have made.",
)
@click.option("--force", is_flag=True, help="Run all that is selected, also what is up to date, and train anew.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    envvar="DEEPHASH_WORKERS",
    show_envvar=True,
    help="How many nodes run side by side, one for each core by default; the results are the same.",
)
@click.option(
    "--on-error",
    type=click.Choice(["continue", "stop"]),
    default="continue",
    show_default=True,
    help="Whether nodes still run that do not need what a failed one would have made.",
)
def run(stale: str, force: bool, workers: int | None, on_error: str, **options: Any) -> Any:
    """Check the options, and have Kedro run what of it is not up to date."""
    if not options["conf_source"]:
        enter_project()
    if options["only_missing_outputs"]:
        raise InputError(
            "--only-missing-outputs would leave what is stale: leave it out, a run skips what is up to date"
        )
    refuse_versions(options["load_versions"])
    if options["pipeline"] and options["pipelines"]:
        raise InputError("--pipeline and --pipelines are one option: name all pipelines in --pipelines")
    # --pipeline is deprecated in Kedro 1.7 in favour of --pipelines; here they are the same.
    alone = options["pipeline"]
    names = options["pipelines"] or [alone or "full"]
    # As the session will ask for them: when others are asked for, Kedro has all of them made again.
    pipelines.set_requested(names)
    pipeline = joined_pipelines(names)
    runner = options["runner"] or ("ParallelRunner" if (workers or cpu_count()) > 1 else "SequentialRunner")
    runner = RUNNERS.get(runner, runner)
    if runner not in RUNNERS.values():
        raise InputError(f"unknown runner `{runner}`: use one of {', '.join(RUNNERS.values())}")
    narrowed = any(options.get(name) for name in NARROWING)
    if names == [INDEXING] and not narrowed:
        # An index has the pictures of the whole database, so one is made.
        logger.info("the index of %s is made; --namespaces=itq.b32 makes that of another cell", INDEXED.namespace)
        options["namespaces"] = [INDEXED.namespace]
    options["namespaces"] = within_stages(options["namespaces"], pipeline)
    selected = selection(options, pipeline)
    policy = Policy(
        stale_allowed=stale == "allow",
        forced=force,
        skipping=not force,
        whole=set(names) <= WHOLE_PIPELINES and not narrowed,
        conf_source=options["conf_source"],
    )
    if policy.skipping and _is_up_to_date(selected, options, policy):
        return None
    given = {"workers": workers, "on_error": on_error, **(options["runner_params"] or {}), "policy": policy}
    options["params"] = with_policy(options["params"], policy)
    options |= {"pipeline": None, "pipelines": names, "runner": runner, "runner_params": given}
    assert kedro_run.callback is not None, "Kedro's run command does something"
    return kedro_run.callback(**options)


def _of_kedro(option: click.Parameter) -> click.Parameter:
    """Give an option of Kedro's with what it is here."""
    option = copy.copy(option)
    if isinstance(option, click.Option):
        option.help = OPTION_HELP.get(option.name or "", option.help)
        option.callback = CALLBACKS.get(option.name or "", option.callback)
    return option


run.params[:0] = map(_of_kedro, kedro_run.params)


def selection(options: Mapping[str, Any], pipeline: Pipeline) -> Pipeline:
    """Give the nodes that options select; Kedro answers names that are not there with a traceback.

    Raises:
        InputError: one names what is not there, or all together leave no node.
    """
    given = {option: options[option] for option in (*FILTERS, "namespaces") if options.get(option)}
    try:
        return pipeline.filter(
            **{"node_namespaces" if name == "namespaces" else name: value for name, value in given.items()}
        )
    except ValueError as error:
        asked = ", ".join(f"{name}={','.join(map(str, values))}" for name, values in given.items())
        raise InputError(
            f"{error} ({asked}): `kedro registry describe full` lists nodes, `kedro catalog describe-datasets` datasets"
        ) from error


def within_stages(namespaces: Sequence[str], pipeline: Pipeline) -> list[str]:
    """Put the stages before namespaces of cells: ``itq`` means ``baseline_hashing.itq`` and ``evaluation.itq``.

    Args:
        namespaces: names as given, of stages, methods or cells.
        pipeline: pipeline that runs.

    Raises:
        InputError: the pipeline has no such namespace.
    """
    there = {node.namespace or "" for node in pipeline.nodes}
    stages = {namespace.partition(".")[0] for namespace in there}
    expanded = []
    for namespace in namespaces:
        candidates = [namespace, *(f"{stage}.{namespace}" for stage in sorted(stages))]
        found = [name for name in candidates if any(f"{other}.".startswith(f"{name}.") for other in there)]
        if not found:
            raise InputError(f"unknown namespace `{namespace}`: name a stage, a method or a cell such as itq.b48")
        expanded += found
    # Kedro takes the nodes of a namespace once for each of those that it lies in.
    named = dict.fromkeys(expanded)
    return [name for name in named if not any(name.startswith(f"{other}.") for other in named)]


def _is_up_to_date(pipeline: Pipeline, options: Mapping[str, Any], policy: Policy) -> bool:
    """Say whether a run would do nothing; then show what it would have shown."""
    catalog = open_catalog(options["env"], options["params"], options["conf_source"])
    folder = ProjectGraph(pipeline.nodes, catalog).benchmark_folder
    # All was made, but temporary files may be left, and MLflow shows the run as at work: a run of no nodes ends that.
    if folder is not None and RunLock(folder).is_left:
        return False
    if nodes_to_run(pipeline, catalog, policy.stale_allowed, policy.whole):
        return False
    logger.info("everything is up to date; --force makes it again")
    ResultTable().after_pipeline_run(
        pipeline=pipeline, catalog=catalog, run_params={"env": options["env"], "runtime_params": options["params"]}
    )
    return True
