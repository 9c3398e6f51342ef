"""Errors that a user can mend, of every command, in one line and without a traceback."""

import copy
import errno
import functools
import io
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import yaml  # type: ignore[import-untyped]
from click.core import ParameterSource
from kedro.config import MissingConfigException
from kedro.framework.project import LOGGING
from kedro.io import DatasetError
from kedro.validation.exceptions import ParameterValidationError
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from deephash_pipeline.common.errors import InputError, blamed_on, chain_of
from deephash_pipeline.common.project_folder import project_root
from deephash_pipeline.common.writing import cannot_write
from deephash_pipeline.project.environments import environments, further_layers, place_of

logger = logging.getLogger(__name__)

USER_ERRORS = (InputError, DatasetError, ParameterValidationError)
WORDS_OF_LIBRARIES = re.compile(
    r"Parameter validation failed:\n- |Failed to instantiate \S+ for parameter \S+: |\d+ validation errors? for \S+\n"
    r"|(?m:^- )|Value error, | \[type=[^\n]*"
)
"""What Kedro and pydantic say around a fault."""
END_OF_FAULT = re.compile(r"\n *For further information visit \S+")
LOGGING_FILE = Path("conf/logging.yml")
NOT_IN_PATHS = "?%"
"""What SQLAlchemy, which opens MLflow's database, takes for the end or an escape of a path."""


def guarded(command: click.Command) -> click.Command:
    """Give a command, or a group with all of its own, that reports bad input in one line."""
    command = copy.copy(command)
    if isinstance(command, click.Group):
        command.commands = {name: guarded(each) for name, each in command.commands.items()}
    elif command.callback is not None:
        command.callback = one_line_errors(command.callback)
    return command


def one_line_errors(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Turn errors a user can mend into ``Error: <one line>`` and exit code 1; other errors keep their traceback."""

    @functools.wraps(callback)
    def wrapped(**options: Any) -> Any:
        show_all_characters()
        try:
            refuse_empty(click.get_current_context())
            return callback(**options)
        except KeyboardInterrupt as interruption:
            # Outside trainings, which stop after a step: for click it is exit code 1, for a shell 130.
            reported = click.ClickException("interrupted: the same command goes on with what is not made yet")
            reported.exit_code = 128 + signal.SIGINT  # type: ignore[misc]
            raise reported from interruption
        except Exception as error:
            links = list(causes(error))
            known = next((link for link in links if isinstance(link, USER_ERRORS)), None)
            if (cause := known or explained(links, options.get("env"), options.get("conf_source"))) is None:
                raise
            logger.debug("details", exc_info=error)
            said = END_OF_FAULT.sub(";", WORDS_OF_LIBRARIES.sub("", str(cause))).replace("\n  ", ": ")
            reported = click.ClickException(" ".join(said.split()).rstrip(";"))
            # An interrupted training ends like any command that a signal has ended.
            reported.exit_code = getattr(cause, "exit_code", reported.exit_code)  # type: ignore[misc]
            raise reported from error

    return wrapped


def show_all_characters() -> None:
    r"""Have characters that the terminal's encoding lacks printed as ``\uXXXX``, and not end the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="backslashreplace")


def causes(error: BaseException) -> Iterator[BaseException]:
    """Walk from an error to the first cause, most specific first."""
    chain = chain_of(error)
    yield from (link for link in chain if isinstance(link, InputError))
    yield from chain


def refuse_empty(context: click.Context) -> None:
    """Refuse an option that is given and says nothing, as of a variable that is not set: Kedro takes its default.

    Raises:
        InputError: one is.
    """
    for name, value in context.params.items():
        if value in ("", [], ()) and context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            remedy = "name an environment of conf/, or leave it out" if name == "env" else "leave it out"
            raise InputError(f"--{name.replace('_', '-')} is empty: {remedy}")


def of_option(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Let the callback of an option, which runs before its command, refuse what it is given in one line."""

    @functools.wraps(callback)
    def refusing(*arguments: Any) -> Any:
        try:
            return callback(*arguments)
        except InputError as error:
            raise click.ClickException(str(error)) from error

    return refusing


def enter_project() -> None:
    """Make the project's folder the working directory, and log as it says, from whatever folder below it.

    Raises:
        InputError: its path has a character that the database of MLflow cannot be opened by, or logging cannot be
            configured.
    """
    root = project_root()
    refuse_characters(root)
    if root == Path.cwd():
        return
    os.chdir(root)
    if "KEDRO_LOGGING_CONFIG" not in os.environ and LOGGING_FILE.is_file():
        with blamed_on(LOGGING_FILE):
            LOGGING.configure(yaml.safe_load(LOGGING_FILE.read_text(encoding="utf-8")))


def refuse_characters(root: Path) -> None:
    """Refuse a project's path with a character that the database of MLflow cannot be opened by.

    Raises:
        InputError: it has one.
    """
    found = next((character for character in NOT_IN_PATHS if character in str(root)), None)
    if found:
        raise InputError(f"the project's path {root} has a `{found}`, which MLflow cannot open: rename the folder")


def explained(
    links: Sequence[BaseException], environment: str | None, conf_source: str | None = None
) -> InputError | None:
    """Explain errors that are no bug: of the configuration, the disk or the memory.

    Args:
        links: an error and its causes.
        environment: environment of the run.
        conf_source: folder of the configuration; None for the project's.

    Returns:
        Fault and remedy in one line; None if that is not known.
    """
    conf = Path(conf_source or "conf")
    # A configuration that is no folder here is an archive, or in an object store.
    if environment and conf.is_dir() and environment not in ("base", *environments(conf)):
        return InputError(f"there is no environment `{environment}`: {conf}/ has {', '.join(environments(conf))}")
    if fault := configuration_fault(environment, conf):
        return InputError(fault)
    for link in links:
        if isinstance(link, MissingConfigException):
            return InputError(str(link))
        if isinstance(link, OmegaConfBaseException):
            where = f" (`{link.full_key}`)" if getattr(link, "full_key", None) else ""
            return InputError(
                f"configuration: {str(link).partition(chr(10))[0].rstrip('.')}{where}: mend it in {conf}/"
            )
        if isinstance(link, OSError) and link.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG):
            return cannot_write(link.filename or "a file", link, ", and give the same command again")
        if isinstance(link, OSError) and link.errno and (link.filename is not None or link.errno == errno.EIO):
            where = link.filename or "a file"
            return InputError(f"{where} cannot be read or written ({link.strerror}): mend that, and run again")
        if isinstance(link, UnicodeEncodeError) and link.reason == "surrogates not allowed":
            return InputError(f"{ascii(link.object)[1:-1][:200]} is no UTF-8: rename the file, or the folder it is in")
        if isinstance(link, MemoryError):
            return InputError(f"out of memory ({link}): use smaller batches or fewer images, or a larger machine")
    return None


def configuration_fault(environment: str | None, conf: Path = Path("conf")) -> str | None:
    """Look for a file of the configuration that is no YAML, or no mapping.

    Args:
        environment: environment of the run.
        conf: folder of the configuration.

    Returns:
        The first with its fault and line; None if all can be read.
    """
    places = [conf / "base", place_of(conf, environment or "digits")]
    for place in places:
        inside = (path for path in place.rglob("*") if path.suffix in (".yml", ".yaml"))
        for path in sorted(inside) if place.is_dir() else [place] if place.is_file() else []:
            try:
                content = OmegaConf.to_container(OmegaConf.load(io.StringIO(path.read_bytes().decode())))
                # OmegaConf takes text alone for a name without a value.
                if not isinstance(content, dict) or [*content.values()] == [None]:
                    raise ValueError("it has no names with values, as in `name: value`")
            except (yaml.YAMLError, OmegaConfBaseException, OSError, ValueError, RecursionError) as error:
                return f"{path} cannot be read ({' '.join(str(error).split())}): mend it, in UTF-8"
            # One that comes twice is read once: what extends itself is refused elsewhere.
            places += [further for further in further_layers(conf, path, content) if further not in places]
    return None
