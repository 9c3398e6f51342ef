"""Packages of extras, which only those who use them install."""

from importlib import import_module
from typing import Any

from deephash_pipeline.common.errors import InputError


def missing(error: ImportError, extra: str) -> InputError:
    """Name what cannot be imported, and the extra that installs it.

    Example:
        >>> str(missing(ModuleNotFoundError("No module named 'kedro'", name="kedro"), "pipeline"))
        "`kedro` cannot be imported (No module named 'kedro'): pip install 'deephash-pipeline[pipeline]'"
    """
    return InputError(f"`{error.name}` cannot be imported ({error}): pip install 'deephash-pipeline[{extra}]'")


def required(module: str, extra: str) -> Any:
    """Import a package of an extra.

    Raises:
        InputError: it is not installed.

    Example:
        >>> required("json", "none").dumps([1])
        '[1]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise missing(error, extra) from error
