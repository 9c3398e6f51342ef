"""The command `deephash-pipeline`: a file for each command.

Kedro takes its commands from `cli`, which is imported when it is asked for: a service alone has no Kedro.
"""

from importlib import import_module
from typing import Any

__all__ = ["cli"]


def __getattr__(name: str) -> Any:
    if name != "cli":
        raise AttributeError(name)
    return import_module("deephash_pipeline.cli.main").cli
