"""Kedro's settings: https://docs.kedro.org/en/stable/kedro_project_setup/settings.html."""

import sys

from deephash_pipeline.fork_server import start_if_wanted
from deephash_pipeline.imports import imported_for_good

# Workers' imports take as long as those below, on another core.
start_if_wanted(sys.argv)

try:
    with imported_for_good():
        from deephash_pipeline.checks import SoundRun
        from deephash_pipeline.environments import ExtendingConfigLoader
        from deephash_pipeline.freshness import Provenance
        from deephash_pipeline.grid import cell_parameters
        from deephash_pipeline.hooks import KnownParameters, LastGoodWeights, ResultTable, StageLog
        from deephash_pipeline.tracking import MlflowTracking
except KeyboardInterrupt:
    # Most of what a command waits for at its beginning are these imports.
    sys.stderr.write("Error: interrupted\n")
    sys.exit(130)

HOOKS = (ResultTable(), MlflowTracking(), StageLog(), LastGoodWeights(), Provenance(), KnownParameters(), SoundRun())

CONFIG_LOADER_CLASS = ExtendingConfigLoader
CONFIG_LOADER_ARGS = {
    "base_env": "base",
    "default_run_env": "digits",
    # An environment states only what differs from the base, and from the environment that it extends.
    "merge_strategy": {"parameters": "soft", "globals": "soft"},
    "custom_resolvers": {"cells": cell_parameters},
}
