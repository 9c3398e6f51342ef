import pytest
from kedro.framework.hooks.manager import _create_hook_manager


@pytest.fixture
def run():
    """Run a pipeline with some hooks, as a session would."""

    def run(runner, pipeline, catalog, *hooks):
        manager = _create_hook_manager()
        for hook in hooks:
            manager.register(hook)
        runner.run(pipeline, catalog, manager)

    return run
