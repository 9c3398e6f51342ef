"""Kedro's settings: https://docs.kedro.org/en/stable/kedro_project_setup/settings.html."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from deephash_pipeline.common.openmp import wait_asleep
from deephash_pipeline.project.environments import LayeredConfigLoader

# Kedro reads this module before any that computes.
wait_asleep()


class LateHooks:
    """Hooks that are imported when a session begins, not by a command that only lists names."""

    @cached_property
    def _made(self) -> tuple[Any, ...]:
        # ruff: noqa: PLC0415
        from deephash_pipeline.project.checks import SoundRun
        from deephash_pipeline.project.configured import NamedParameters
        from deephash_pipeline.project.freshness import Provenance
        from deephash_pipeline.project.hooks import ResultTable
        from deephash_pipeline.project.last_run import LastRun
        from deephash_pipeline.project.tracking import MlflowTracking

        return NamedParameters(), ResultTable(), MlflowTracking(), LastRun(), Provenance(), SoundRun()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._made)


HOOKS = LateHooks()

CONFIG_LOADER_CLASS = LayeredConfigLoader
CONFIG_LOADER_ARGS = {
    "base_env": "base",
    "default_run_env": "digits",
    # An environment states only what differs from the base, and from the environment that it extends.
    "merge_strategy": {"parameters": "soft", "globals": "soft"},
}
