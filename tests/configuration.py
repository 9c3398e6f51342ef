"""What Kedro reads in this repository's conf, for tests of benchmarks."""

from functools import cache
from pathlib import Path
from typing import Any

from deephash_pipeline.environments import ExtendingConfigLoader
from deephash_pipeline.settings import CONFIG_LOADER_ARGS

CONF = Path(__file__).resolve().parents[1] / "conf"
ENVIRONMENTS = sorted({folder.name for folder in CONF.iterdir() if folder.is_dir()} - {"base", "local"})


@cache
def configured(environment: str) -> dict[str, Any]:
    """Globals, catalog and parameters of an environment.

    All at once: resolvers such as ``globals`` are those of the loader that was made last.
    """
    loader = ExtendingConfigLoader(CONF, environment, **CONFIG_LOADER_ARGS)
    return {key: loader[key] for key in ("globals", "catalog", "parameters")}
