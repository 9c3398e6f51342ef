"""The hook that completes Kedro's parameters: by the names that the configuration gives them, and with the grid."""

from collections.abc import Iterator, Mapping
from typing import Any

from kedro.framework.context import KedroContext
from kedro.framework.hooks import hook_impl
from kedro.io import CatalogProtocol
from pydantic import BaseModel, RootModel

from deephash_pipeline.common.parameters import refuse_booleans_for_numbers
from deephash_pipeline.pipelines.names import FIELD_AT_A_GLANCE
from deephash_pipeline.project.replicate import REPLICATE


class NamedParameters:
    """Gives every catalog its parameters by dotted names, and the cells of the grid."""

    def __init__(self) -> None:
        self._stated: Mapping[str, Any] = {}

    @hook_impl
    def after_context_created(self, context: KedroContext) -> None:
        """Note the parameters as they are stated, and look at the types that one pipeline expects, not at all."""
        # Private: else Kedro makes every pipeline there is. A run, by Kedro itself, says which it looks at.
        context._pipelines_to_validate = [FIELD_AT_A_GLANCE]
        self._stated = context.config_loader["parameters"]

    @hook_impl
    def after_catalog_created(self, catalog: CatalogProtocol[Any, Any], parameters: dict[str, Any]) -> None:
        """Add the parameters.

        Raises:
            InputError: one is true or false where a number is expected.
        """
        from deephash_pipeline.pipelines.grid import grid_parameters  # noqa: PLC0415 - seconds, at every command

        validated = parameters["parameters"]
        for name, value in self._stated.items():
            refuse_booleans_for_numbers({name: value}, validated, "parameters")
        added = {f"params:{name}": value for name, value in dotted_parameters(validated)}
        added |= grid_parameters(validated.get(REPLICATE, 1))
        # Kedro has named most of them, and warns of what is replaced.
        for name in added.keys() - set(catalog):
            catalog[name] = added[name]


def dotted_parameters(parameters: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all parameters and groups of them by their dotted names.

    >>> dict(dotted_parameters({"stage": {"epochs": 3}}))
    {'stage': {'epochs': 3}, 'stage.epochs': 3}
    """
    for key, value in parameters.items():
        yield f"{above}{key}", value
        parts = value.root if isinstance(value, RootModel) else dict(value) if isinstance(value, BaseModel) else value
        if isinstance(parts, Mapping):
            yield from dotted_parameters(parts, f"{above}{key}.")
