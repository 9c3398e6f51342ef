"""Kedro, for the commands that work in a project."""

import os

from deephash_pipeline.common.errors import blamed_on
from deephash_pipeline.common.extras import missing
from deephash_pipeline.common.project_folder import PACKAGE, template


def configure_kedro() -> None:
    """Have Kedro know this package, and log as its configuration says; nothing if it does already.

    Raises:
        InputError: Kedro is not installed, or the configuration of logging cannot be read.
    """
    logging_file = os.environ.setdefault("KEDRO_LOGGING_CONFIG", str(template() / "conf" / "logging.yml"))
    try:
        with blamed_on(logging_file):
            from kedro.framework import project  # noqa: PLC0415 - reads the configuration of logging
    except ModuleNotFoundError as error:
        raise missing(error, "pipeline") from error
    if project.PACKAGE_NAME is None:
        project.configure_project(PACKAGE.name)
