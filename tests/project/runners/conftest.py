from collections.abc import Callable
from typing import Any

import pytest
from kedro.framework.hooks.manager import _create_hook_manager
from kedro.io import DataCatalog
from kedro.pipeline import Pipeline

from deephash_pipeline.project.runners import GridRunner

Run = Callable[..., None]


@pytest.fixture
def run() -> Run:
    """Run a pipeline with some hooks, as a session would."""

    def run(runner: GridRunner, pipeline: Pipeline, catalog: DataCatalog, *hooks: Any) -> None:
        manager = _create_hook_manager()
        for hook in hooks:
            manager.register(hook)
        runner.run(pipeline, catalog, manager)

    return run
