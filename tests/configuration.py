"""What Kedro reads in this repository's conf, for tests of benchmarks."""

from functools import cache
from pathlib import Path

from deephash_pipeline.project.environments import LayeredConfigLoader, environments
from deephash_pipeline.settings import CONFIG_LOADER_ARGS

CONF = Path(__file__).resolve().parents[1] / "conf"
ENVIRONMENTS = environments(CONF)


class _SomeFiles(LayeredConfigLoader):
    """Of which no file is named that other patterns would read."""

    def _unread_files(self):
        return []


@cache
def configured(environment, key, group=None):
    """Globals, catalog or parameters of an environment; of the parameters all, or, in no time, a group."""
    patterns = {"parameters": [f"parameters_{group}.yml", "parameters.yml"] if group else ["parameters*.yml"]}
    loader = _SomeFiles(CONF, environment, config_patterns=patterns, **CONFIG_LOADER_ARGS)
    return loader[key]
