"""Where values of the configuration come from: the last file that states each, or the command."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from deephash_pipeline.common.parameters import flatten
from deephash_pipeline.project.environments import BENCHMARK, LayeredConfigLoader
from deephash_pipeline.project.parameters import DEFAULT

OF_GLOBALS = re.compile(r"\$\{globals: *([\w.]+)[^}]*\}")
"""A whole value that is that of a global."""
COMMAND_OPTION, ENVIRONMENT_NAME = "--params", "the name of the environment"


def origins(loader: LayeredConfigLoader) -> dict[str, tuple[Any, str]]:
    """Give every parameter that is stated, by its dotted name: its value, and the file that says it."""
    of_parameters = [*loader.statements("parameters"), (COMMAND_OPTION, loader.runtime_params or {})]
    of_globals = list(loader.statements("globals"))
    found = {}
    for name, value in flatten("", loader["parameters"]).items():
        file, stated, below = _last(of_parameters, list(_names(name)))
        if isinstance(stated, str) and (of_global := OF_GLOBALS.fullmatch(stated)):
            named = f"{of_global[1]}{below}"
            file = _last(of_globals, [named])[0] or (ENVIRONMENT_NAME if named == BENCHMARK else file)
        found[name] = value, file
    return found


def _names(name: str) -> Iterator[str]:
    """Yield the names under which a value may be stated: its own, and that in the defaults of its group."""
    yield name
    group, _, rest = name.partition(".")
    block, _, within = rest.partition(".")
    if block and within:
        yield f"{group}.{DEFAULT}.{within}"


def _last(statements: list[tuple[str, Mapping[str, Any]]], names: list[str]) -> tuple[str, Any, str]:
    """Find the last file that states one of some names, the first of them that any states, or a group it is in.

    Returns:
        The file, what it states, and what of the name lies below that, such as ``.epochs``.
    """
    for name in names:
        for file, said in reversed(statements):
            value: Any = said
            parts = name.split(".")
            for depth, part in enumerate(parts):
                if not isinstance(value, Mapping):
                    return file, value, "".join(f".{below}" for below in parts[depth:])
                if part not in value:
                    break
                value = value[part]
            else:
                return file, value, ""
    return "", None, ""
