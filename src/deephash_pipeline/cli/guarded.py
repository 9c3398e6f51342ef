"""All commands, with bad input reported in one line and without a traceback; ``run`` is Kedro's with more options."""

import copy
import functools
import logging
import re
import signal
from collections.abc import Callable, Iterator
from typing import Any

import click
from kedro.config import MissingConfigException
from kedro.framework.cli.project import run as kedro_run
from kedro.framework.project import pipelines
from kedro.io import DatasetError
from kedro.pipeline import Pipeline
from kedro.validation.exceptions import ParameterValidationError

from deephash_pipeline.cli.duplicates import duplicates
from deephash_pipeline.cli.encode import encode
from deephash_pipeline.cli.export import export
from deephash_pipeline.cli.methods import methods
from deephash_pipeline.cli.package import export_huggingface, export_onnx, log_model
from deephash_pipeline.cli.pairs import pairs
from deephash_pipeline.cli.project import hasher, new
from deephash_pipeline.cli.provenance import (
    ENV_HELP,
    INDEXING,
    NARROWING,
    RUN_OPTIONS,
    skipping_what_is_up_to_date,
    status,
)
from deephash_pipeline.cli.refusals import (
    check_options,
    enter_project,
    explained,
    joined,
    refuse_empty,
    split_params,
)
from deephash_pipeline.cli.search import index, search
from deephash_pipeline.cli.serve import serve
from deephash_pipeline.common.errors import InputError, chain_of
from deephash_pipeline.pipelines.grid import INDEXED

logger = logging.getLogger(__name__)

USER_ERRORS = (InputError, DatasetError, ParameterValidationError, MissingConfigException)
HELP = {
    "env": ENV_HELP,
    "runner": "ParallelRunner, the default on several cores, SequentialRunner or "
    "deephash_pipeline.project.runners.RayRunner.",
}
PYDANTIC_DETAILS = re.compile(r"\[type=[^\n]*|For further information visit \S+")


def one_line_errors(command: Callable[..., Any] | None) -> Callable[..., Any]:
    """Turn errors a user can mend into ``Error: <one line>`` and exit code 1; other errors keep their traceback."""
    assert command is not None, "Kedro's run command does something"

    @functools.wraps(command)
    def wrapped(**options: Any) -> Any:
        # --pipeline is deprecated in Kedro 1.7 in favour of --pipelines; here they are the same.
        if options.get("pipeline") and not options.get("pipelines"):
            options["pipelines"], options["pipeline"] = [options["pipeline"]], None
        try:
            # Those that work in a project; files that others name are relative to where they are.
            if "params" in options and not options.get("conf_source"):
                enter_project()
            refuse_empty(click.get_current_context(silent=True))
            if "runner" in options:
                options = checked_run(options)
            return command(**options)
        except KeyboardInterrupt as interruption:
            # Outside trainings, which stop after a step: for click it is exit code 1, for a shell 130.
            reported = click.ClickException("interrupted: the same command goes on with what is not made yet")
            reported.exit_code = 128 + signal.SIGINT  # type: ignore[misc]
            raise reported from interruption
        except Exception as error:
            links = list(causes(error))
            cause = next((link for link in links if isinstance(link, USER_ERRORS)), None)
            cause = cause or explained(links, options.get("env"))
            if cause is None:
                raise
            logger.debug("details", exc_info=error)
            reported = click.ClickException(" ".join(PYDANTIC_DETAILS.sub("", str(cause)).split()))
            # An interrupted training ends like any command that a signal has ended.
            reported.exit_code = getattr(cause, "exit_code", reported.exit_code)  # type: ignore[misc]
            raise reported from error

    return wrapped


def checked_run(options: dict[str, Any]) -> dict[str, Any]:
    """Give the options of a run with its pipelines, and namespaces and cells as the pipelines have them.

    Raises:
        InputError: one of them cannot be used.
    """
    names = options.get("pipelines") or ["full"]
    # As the session will ask for them: when others are asked for, Kedro has all of them made again.
    pipelines.set_requested(names)
    pipeline = joined(names)
    check_options(options, pipeline)
    options = {**options, "pipelines": names}
    if list(names) == [INDEXING] and not any(options.get(name) for name in NARROWING):
        # An index has the pictures of the whole database, so one is made.
        logger.info("the index of %s is made; --namespaces=itq.b32 makes that of another cell", INDEXED.namespace)
        options["namespaces"] = [INDEXED.namespace]
    if options.get("namespaces"):
        options["namespaces"] = within_stages(options["namespaces"], pipeline)
    return options


def within_stages(namespaces: list[str], pipeline: Pipeline) -> list[str]:
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
    return expanded


def causes(error: BaseException) -> Iterator[BaseException]:
    """Walk from an error to the first cause, most specific first."""
    chain = chain_of(error)
    yield from (link for link in chain if isinstance(link, InputError))
    yield from chain


def described(option: click.Parameter) -> click.Parameter:
    """Give an option of Kedro's with what it is here."""
    option = copy.copy(option)
    if isinstance(option, click.Option):
        option.help = HELP.get(option.name or "", option.help)
        option.callback = split_params if option.name == "params" else option.callback
    return option


run = copy.copy(kedro_run)
assert kedro_run.callback is not None, "Kedro's run command does something"
run.params = [*map(described, kedro_run.params), *RUN_OPTIONS]
run.callback = one_line_errors(skipping_what_is_up_to_date(kedro_run.callback))
for command in (
    *(new, methods, hasher, status, encode, *index.commands.values(), search, duplicates, pairs, serve),
    *(export, export_onnx, export_huggingface, log_model),
):
    command.callback = one_line_errors(command.callback)
