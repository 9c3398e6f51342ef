"""Errors of a Kedro project that a user can mend: of its configuration, and of the place where it is."""

import os
from collections.abc import Sequence
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from kedro.config import MissingConfigException
from kedro.framework.project import LOGGING
from kedro.io import DatasetError
from kedro.validation.exceptions import ParameterValidationError
from omegaconf.errors import OmegaConfBaseException

from deephash_pipeline.common.errors import InputError, blamed_on
from deephash_pipeline.common.project_folder import project_root

LOGGING_FILE = Path("conf/logging.yml")
NOT_IN_PATHS = "?%"
"""What SQLAlchemy, which opens MLflow's database, takes for the end or an escape of a path."""


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


def fault_of_project(links: Sequence[BaseException]) -> BaseException | None:
    """Explain errors of Kedro, and of the configuration.

    Args:
        links: an error and its causes.

    Returns:
        The error to report; None if it is none of these.
    """
    for link in links:
        if isinstance(link, DatasetError | ParameterValidationError | MissingConfigException):
            return link
        if isinstance(link, OmegaConfBaseException):
            where = f" (`{link.full_key}`)" if getattr(link, "full_key", None) else ""
            return InputError(f"configuration: {str(link).partition(chr(10))[0].rstrip('.')}{where}: mend it")
    return None
