"""Errors that a user can mend, of every command, in one line and without a traceback."""

import copy
import errno
import functools
import io
import logging
import re
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.core import ParameterSource

from deephash_pipeline.common.errors import InputError, chain_of
from deephash_pipeline.common.writing import cannot_write

logger = logging.getLogger(__name__)

WORDS_OF_LIBRARIES = re.compile(
    r"Parameter validation failed:\n- |Failed to instantiate \S+ for parameter \S+: |\d+ validation errors? for \S+\n"
    r"|(?m:^- )|Value error, | \[type=[^\n]*"
)
"""What Kedro and pydantic say around a fault."""
END_OF_FAULT = re.compile(r"\n *For further information visit \S+")


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
            if (cause := known_fault(chain_of(error))) is None:
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


def known_fault(links: Sequence[BaseException]) -> BaseException | None:
    """Find what a user can mend among an error and its causes.

    Args:
        links: an error and its causes.

    Returns:
        The error to report; None if that is not known.
    """
    if named := next((link for link in links if isinstance(link, InputError)), None):
        return named
    if "kedro" in sys.modules:
        # Of its errors only those can be raised that have been imported.
        from deephash_pipeline.cli.project_faults import fault_of_project  # noqa: PLC0415

        if fault := fault_of_project(links):
            return fault
    return explained(links)


def explained(links: Sequence[BaseException]) -> InputError | None:
    """Explain errors that are no bug: of the disk or the memory.

    Args:
        links: an error and its causes.

    Returns:
        Fault and remedy in one line; None if that is not known.
    """
    for link in links:
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
