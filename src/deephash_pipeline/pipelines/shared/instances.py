"""One template for many cells."""

from collections.abc import Mapping

from kedro.pipeline import Pipeline

from deephash_pipeline.common.cell import Cell

OF_CELL = {"checkpoints", "codes", "encoder", "hasher", "study"}
"""Inputs that each cell has for itself, in its namespace; all others are shared."""


def of_cell(
    template: Pipeline,
    cell: Cell,
    inputs: Mapping[str, str] | None = None,
    parameters: Mapping[str, str] | None = None,
) -> Pipeline:
    """Instantiate a template for a cell: what it makes and what is its own gets the cell's namespace.

    Args:
        template: nodes that read `params:cell`, if they want to know the cell.
        cell: for which cell.
        inputs: datasets that the template reads, and what they are called outside, where that differs.
        parameters: the same of parameters.
    """
    read = template.inputs()
    given = {name for name in read if name.startswith("params:")}
    of_parameters = {**{name: name for name in given}, "params:cell": f"params:{cell.parameter}", **(parameters or {})}
    return Pipeline(
        template,
        namespace=cell.namespace,
        inputs={name: (inputs or {}).get(name, name) for name in read - given - OF_CELL},
        parameters={name: of_parameters[name] for name in given},
    )
