"""What a finished run of the project has left, by its Kedro catalog."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project
from kedro.io import DatasetError

from benchmarks.documents import PROJECT
from deephash_pipeline.common.errors import InputError


@contextmanager
def finished_run(environment: str, project: Path = PROJECT) -> Iterator[Any]:
    """Open the catalog; InputError names the command that makes what is missing from it."""
    bootstrap_project(project)
    logging.getLogger("kedro").setLevel(logging.WARNING)
    with KedroSession.create(project, env=environment) as session:
        try:
            yield session.load_context().catalog
        except DatasetError as error:
            made_by = f"make it by `kedro run --pipelines=full --env={environment}`"
            raise InputError(f"{str(error).partition(':')[0]} is missing or unreadable: {made_by}") from error
