"""Packages of extras, which only those who use them install."""

from importlib import import_module
from typing import Any

from deephash_pipeline.errors import InputError


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
        raise InputError(
            f"`{module}` cannot be imported ({error}): pip install 'deephash-pipeline[{extra}]'"
        ) from error
