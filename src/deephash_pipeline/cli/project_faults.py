"""Errors of a Kedro project that a user can mend: of its configuration, and of the place where it is."""

import io
import os
from collections.abc import Sequence
from pathlib import Path

import yaml  # type: ignore[import-untyped]
from kedro.config import MissingConfigException
from kedro.framework.project import LOGGING
from kedro.io import DatasetError
from kedro.validation.exceptions import ParameterValidationError
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from deephash_pipeline.common.errors import InputError, blamed_on
from deephash_pipeline.common.project_folder import project_root
from deephash_pipeline.project.environments import environments, further_layers, place_of

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


def fault_of_project(
    links: Sequence[BaseException], environment: str | None, conf_source: str | None = None
) -> BaseException | None:
    """Explain errors of Kedro, and of the configuration.

    Args:
        links: an error and its causes.
        environment: environment of the run.
        conf_source: folder of the configuration; None for the project's.

    Returns:
        The error to report; None if it is none of these.
    """
    if said := next((link for link in links if isinstance(link, DatasetError | ParameterValidationError)), None):
        return said
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
