"""Kedro's context, with the parameters by the names that the configuration gives them."""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from kedro.framework.context import KedroContext
from pydantic import BaseModel, RootModel

from deephash_pipeline.common.parameters import refuse_booleans_for_numbers
from deephash_pipeline.pipelines.names import FIELD_AT_A_GLANCE
from deephash_pipeline.project.replicate import REPLICATE


class ProjectContext(KedroContext):
    """Kedro's, which makes no pipeline but those that run, and has the grid among its parameters."""

    def _get_catalog(self, *arguments: Any, **options: Any) -> Any:
        if "kedro_viz.server" in sys.modules:
            # This process is to show or to write pictures of pipelines.
            from deephash_pipeline.project.viz import lay_out_late  # noqa: PLC0415

            lay_out_late()
        return super()._get_catalog(*arguments, **options)

    def _get_validated_params(self) -> dict[str, Any]:
        if self._pipelines_to_validate is None:
            # For a notebook or Kedro-Viz. Kedro would make all pipelines there are, to look at the types they expect.
            self._pipelines_to_validate = [FIELD_AT_A_GLANCE]
        # Stated so, they are read from their files once, not at each of the three times that they are asked for.
        self.config_loader["parameters"] = given = self.config_loader["parameters"]
        validated: dict[str, Any] = super()._get_validated_params()
        for name, value in given.items():
            refuse_booleans_for_numbers({name: value}, validated, "parameters")
        return validated

    def _get_parameters(self) -> dict[str, Any]:
        from deephash_pipeline.pipelines.grid import grid_parameters  # noqa: PLC0415 - seconds, at every command

        named_parameters = {f"params:{name}": value for name, value in named(self.params)}
        return {"parameters": self.params, **named_parameters, **grid_parameters(self.params.get(REPLICATE, 1))}


def named(parameters: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all parameters and groups of them by their dotted names.

    >>> dict(named({"stage": {"epochs": 3}}))
    {'stage': {'epochs': 3}, 'stage.epochs': 3}
    """
    for key, value in parameters.items():
        yield f"{above}{key}", value
        parts = value.root if isinstance(value, RootModel) else dict(value) if isinstance(value, BaseModel) else value
        if isinstance(parts, Mapping):
            yield from named(parts, f"{above}{key}.")
