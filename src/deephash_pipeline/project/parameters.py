"""Parameters as nodes name them, and as flat names and values."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

DEFAULT = "default"
"""Name of the block of a group whose values the others have where they say nothing."""


def merged(under: Any, over: Any) -> Any:
    """Lay a value over another; of two mappings, name by name.

    >>> merged({"rate": 1, "loss": {"margin": 2}}, {"loss": {"slope": 3}})
    {'rate': 1, 'loss': {'margin': 2, 'slope': 3}}
    """
    if not (isinstance(under, Mapping) and isinstance(over, Mapping)):
        return over
    return {**under, **{name: merged(under.get(name), value) for name, value in over.items()}}


def with_defaults(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Give every block of a group what the block `default` has and it does not say.

    >>> with_defaults({"fine_tuning": {"default": {"epochs": 9, "rate": 2}, "csq": {"rate": 1}}})
    {'fine_tuning': {'csq': {'epochs': 9, 'rate': 1}}}
    """
    return {name: _filled(group) if isinstance(group, Mapping) else group for name, group in parameters.items()}


def _filled(group: Mapping[str, Any]) -> Mapping[str, Any]:
    default = group.get(DEFAULT)
    if not isinstance(default, Mapping):
        return group
    return {name: merged(default, block) for name, block in group.items() if name != DEFAULT}


def is_parameter(name: str) -> bool:
    """Say whether an input of a node is no artefact but a parameter."""
    return name == "parameters" or name.startswith("params:")


def unread_parameters(parameters: Mapping[str, Any], read: Collection[str], above: str = "") -> Iterator[str]:
    """Yield the dotted names of parameters or globals that are not read, nor part or group of what is."""
    for key, value in parameters.items():
        name = f"{above}{key}"
        if name in read or str(key).startswith("_"):
            continue
        if isinstance(value, Mapping) and any(other.startswith(f"{name}.") for other in read):
            yield from unread_parameters(value, read, f"{name}.")
        else:
            yield name
