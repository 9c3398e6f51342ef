"""Packages of extras, which only those who use them install, and the command that does."""

import shutil
import sys
from importlib import import_module
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.project_folder import PACKAGE

PACKAGE_NAME = "deephash-pipeline"


def installing(*requirements: str) -> str:
    """Give the command that installs packages into this environment, which has pip or was made by uv.

    Example:
        >>> installing("scipy").split()[-2:]
        ['install', 'scipy']
    """
    words = " ".join(f"'{each}'" if set("[]<>=~!;@ ") & {*each} else each for each in requirements)
    if find_spec("pip") is not None:
        return f"pip install {words}"
    uv = shutil.which("uv") or next((str(each) for each in [_clone() / ".uv/bin/uv"] if each.is_file()), "uv")
    return f"VIRTUAL_ENV={sys.prefix} {uv} pip install {words}"


def installing_extra(extra: str) -> str:
    """Give the command that installs an extra: of the clone that this package lies in, else the packages it names.

    The package itself is on no index.
    """
    if (_clone() / "pyproject.toml").is_file():
        return installing(f"{_clone()}[{extra}]")
    return installing(*_packages_of(extra))


def _clone() -> Path:
    return PACKAGE.parents[1]


def _packages_of(extra: str) -> list[str]:
    found = []
    for text in requires(PACKAGE_NAME) or []:
        requirement, _, marker = (part.strip() for part in text.partition(";"))
        if marker in (f"extra == '{extra}'", f'extra == "{extra}"'):
            of_other = requirement.removeprefix(f"{PACKAGE_NAME}[")
            found += [requirement] if of_other == requirement else _packages_of(of_other.partition("]")[0])
    return found


def missing(error: ImportError, extra: str) -> InputError:
    """Name what cannot be imported, and the command that installs its extra.

    Example:
        >>> str(missing(ModuleNotFoundError("No module named 'kedro'", name="kedro"), "pipeline"))
        "`kedro` cannot be imported (No module named 'kedro'): ..."
    """
    return InputError(f"`{error.name}` cannot be imported ({error}): {installing_extra(extra)}")


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
