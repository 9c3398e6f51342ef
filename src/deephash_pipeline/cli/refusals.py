"""Options and configuration that no run can be made of, explained in one line before a session begins."""

import errno
import io
import operator
import os
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import click
import yaml  # type: ignore[import-untyped]
from click.core import ParameterSource
from kedro.framework.cli.utils import _split_params, split_string
from kedro.framework.project import LOGGING, pipelines
from kedro.pipeline import Pipeline
from kedro.pipeline.pipeline import OutputNotUniqueError
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.project_folder import project_root
from deephash_pipeline.project.environments import EXTENDS, refuse_other_numbers
from deephash_pipeline.project.runners import RUNNERS

LOGGING_FILE = Path("conf/logging.yml")
FILTERS = ("tags", "from_nodes", "to_nodes", "node_names", "from_inputs", "to_outputs")
"""Options of Kedro's ``run``, and arguments of `Pipeline.filter`."""
NOT_IN_PATHS = "?%"
"""What SQLAlchemy, which opens MLflow's database, takes for the end or an escape of a path."""


def enter_project() -> None:
    """Make the project's folder the working directory, and log as it says, from whatever folder below it.

    Raises:
        InputError: its path has a character that the database of MLflow cannot be opened by.
    """
    root = project_root()
    refuse_characters(root)
    if root == Path.cwd():
        return
    os.chdir(root)
    if "KEDRO_LOGGING_CONFIG" not in os.environ and LOGGING_FILE.is_file():
        LOGGING.configure(yaml.safe_load(LOGGING_FILE.read_text(encoding="utf-8")))


def refuse_characters(root: Path) -> None:
    """Refuse a project's path with a character that the database of MLflow cannot be opened by.

    Raises:
        InputError: it has one.
    """
    found = next((character for character in NOT_IN_PATHS if character in str(root)), None)
    if found:
        raise InputError(f"the project's path {root} has a `{found}`, which MLflow cannot open: rename the folder")


def split_params(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Take ``--params`` apart as Kedro does.

    Raises:
        ClickException: a value would be taken for another number.
    """
    for item in split_string(context, parameter, value) if isinstance(value, str) else ():
        try:
            refuse_other_numbers(item.partition("=")[2], f"--params={item}")
        except InputError as error:
            raise click.ClickException(str(error)) from error
    return _split_params(context, parameter, value)


def refuse_empty(context: click.Context | None) -> None:
    """Refuse an option that is given and says nothing, as of a variable that is not set: Kedro takes its default.

    Raises:
        InputError: one is.
    """
    if context is None:
        return
    for name, value in context.params.items():
        if value in ("", [], ()) and context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            remedy = "name a benchmark, a folder of conf/, or leave it out" if name == "env" else "leave it out"
            raise InputError(f"--{name.replace('_', '-')} is empty: {remedy}")


def joined(names: Sequence[str]) -> Pipeline:
    """Join pipelines by name.

    Raises:
        InputError: there is none of a name, or nodes of one name read different cells in two of them.
    """
    found: list[Pipeline] = []
    for name in names:
        if name not in pipelines:
            raise InputError(f"unknown pipeline `{name}`: choose among {', '.join(pipelines)}")
        found.append(pipelines[name])
    try:
        joint: Pipeline = reduce(operator.add, found)
    except (ValueError, OutputNotUniqueError) as error:
        # Nodes of one name, or of one output, that read different cells.
        raise InputError(f"pipelines {', '.join(names)} join different cells: run each by itself") from error
    return joint


def check_options(options: Mapping[str, Any], pipeline: Pipeline) -> None:
    """Look at the options of a run that Kedro would answer with a traceback, or pass over.

    Args:
        options: options of Kedro's ``run``.
        pipeline: pipeline that runs.

    Raises:
        InputError: one names what is not there.
    """
    runner = options.get("runner")
    if runner not in (None, *RUNNERS, *RUNNERS.values()):
        raise InputError(f"unknown runner `{runner}`: use one of {', '.join(RUNNERS.values())}")
    given = {option: options[option] for option in FILTERS if options.get(option)}
    if not given:
        return
    try:
        pipeline.filter(**given)
    except ValueError as error:
        asked = ", ".join(f"{name}={','.join(map(str, values))}" for name, values in given.items())
        raise InputError(
            f"{error} ({asked}): `kedro registry describe full` lists nodes, `kedro catalog describe-datasets` datasets"
        ) from error


def explained(links: Sequence[BaseException], environment: str | None) -> InputError | None:
    """Explain errors that are no bug: of the configuration, the disk or the memory.

    Args:
        links: an error and its causes.
        environment: environment of the run.

    Returns:
        Fault and remedy in one line; None if that is not known.
    """
    fault = configuration_fault(environment)
    if fault:
        return InputError(fault)
    for link in links:
        if isinstance(link, OmegaConfBaseException):
            where = f" (`{link.full_key}`)" if getattr(link, "full_key", None) else ""
            return InputError(f"configuration: {str(link).partition(chr(10))[0].rstrip('.')}{where}: mend it in conf/")
        if isinstance(link, OSError) and link.errno and link.filename is not None:
            if link.errno in (errno.ENOSPC, errno.EDQUOT):
                return InputError(f"{link.filename}: the disk is full: make room, and give the same command again")
            return InputError(f"{link.filename} cannot be read or written ({link.strerror}): mend that, and run again")
        if isinstance(link, UnicodeEncodeError) and link.reason == "surrogates not allowed":
            return InputError(f"{ascii(link.object)[1:-1][:200]} is no UTF-8: rename the file, or the folder it is in")
        if isinstance(link, MemoryError):
            return InputError(f"out of memory ({link}): use smaller batches or fewer images, or a larger machine")
    return None


def configuration_fault(environment: str | None) -> str | None:
    """Look for a file of the configuration that is no YAML, or no mapping.

    Returns:
        The first with its fault and line; None if all can be read.
    """
    folders = ["base", environment or "digits"]
    for folder in folders:
        for path in sorted(path for path in Path("conf", folder).rglob("*") if path.suffix in (".yml", ".yaml")):
            try:
                content = OmegaConf.to_container(OmegaConf.load(io.StringIO(path.read_bytes().decode())))
                # OmegaConf takes text alone for a name without a value.
                if not isinstance(content, dict) or [*content.values()] == [None]:
                    raise ValueError("it has no names with values, as in `name: value`")
            except (yaml.YAMLError, OmegaConfBaseException, OSError, ValueError, RecursionError) as error:
                return f"{path} cannot be read ({' '.join(str(error).split())}): mend it, in UTF-8"
            if path.name == "globals.yml" and content.get(EXTENDS) not in (None, *folders):
                folders.append(str(content[EXTENDS]))
    return None
