"""Hooks where nodes run: in workers, and in runs that no session has begun."""

from collections.abc import Iterable
from typing import Any

from kedro.framework.hooks import specs
from kedro.framework.hooks.markers import HOOK_NAMESPACE
from pluggy import PluginManager


def hook_manager_of(hooks: Iterable[Any] = ()) -> PluginManager:
    """Make a manager of some hooks, which knows all that Kedro calls."""
    manager = PluginManager(HOOK_NAMESPACE)
    for called in (specs.NodeSpecs, specs.PipelineSpecs, specs.DataCatalogSpecs, specs.DatasetSpecs):
        manager.add_hookspecs(called)
    for hook in hooks:
        manager.register(hook)
    return manager
