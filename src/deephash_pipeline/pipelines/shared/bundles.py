"""Nodes whose functions take one object where the catalog stores several datasets.

A training set is one thing to a function and four files to the catalog. A `Bundle` names the files and what they make;
`node` gives Kedro a node with one input for each file, whose types its validation of parameters still sees.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from kedro.pipeline import Node, Pipeline

from deephash_pipeline.common.cell import Cell


@dataclass(frozen=True)
class Bundle:
    """Datasets that make one argument.

    Attributes:
        make: function that is called with the parts, in this order.
        parts: names of datasets, and bundles of them.
    """

    make: Callable[..., Any]
    parts: "tuple[str | Bundle, ...]"


def _makers(inputs: Sequence[str | Bundle]) -> Iterator[Callable[..., Any]]:
    for given in inputs:
        yield from (given.make, *_makers(given.parts)) if isinstance(given, Bundle) else ()


def _flat(inputs: Sequence[str | Bundle]) -> Iterator[str]:
    for given in inputs:
        yield from _flat(given.parts) if isinstance(given, Bundle) else (given,)


def _content(given: str | Bundle, contents: Iterator[Any]) -> Any:
    if isinstance(given, Bundle):
        return given.make(*(_content(part, contents) for part in given.parts))
    return next(contents)


def _parameters(
    function: Callable[..., Any], inputs: "Sequence[str | Bundle]", prefix: str = ""
) -> Iterator[inspect.Parameter]:
    types = get_type_hints(function.__init__ if inspect.isclass(function) else function)
    for name, given in zip(inspect.signature(function).parameters, inputs, strict=False):
        if isinstance(given, Bundle):
            yield from _parameters(given.make, given.parts, f"{prefix}{name}_")
        else:
            annotation = types.get(name, Any)
            yield inspect.Parameter(prefix + name, inspect.Parameter.POSITIONAL_ONLY, annotation=annotation)


class BundledFunction:
    """A function called with the contents of all datasets; a class and not a closure, so that runners can send it.

    Args:
        function: function that takes one argument for each input.
        inputs: names of datasets, and bundles of them.

    Attributes:
        functions: all that is called.
    """

    def __init__(self, function: Callable[..., Any], inputs: Sequence[str | Bundle]) -> None:
        self.function = function
        self.inputs = tuple(inputs)
        self.functions = (function, *_makers(inputs))
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        parameters = list(_parameters(function, self.inputs))
        self.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        self.__signature__ = inspect.Signature(parameters)

    def __call__(self, *contents: Any) -> Any:
        """Make the bundles, and call the function."""
        remaining = iter(contents)
        return self.function(*(_content(given, remaining) for given in self.inputs))


def node(
    function: Callable[..., Any],
    inputs: Sequence[str | Bundle],
    outputs: str | list[str] | dict[str, str],
    name: str | None = None,
) -> Node:
    """Make a Kedro node, by default of the function's name."""
    datasets = list(_flat(inputs))
    called = function if datasets == list(inputs) else BundledFunction(function, inputs)
    return Node(called, inputs=datasets, outputs=outputs, name=name or function.__name__)


CELL_INPUTS = {"checkpoints", "codes", "encoder", "hasher", "study"}
"""Inputs that each cell has for itself, in its namespace; all others are shared."""


def of_cell(
    template: Pipeline, cell: Cell, inputs: Mapping[str, str] | None = None, parameters: Mapping[str, str] | None = None
) -> Pipeline:
    """Instantiate a template for a cell: what it makes and what is its own gets the cell's namespace.

    Args:
        template: nodes that read `params:cell`, if they want to know the cell.
        cell: cell that it is for.
        inputs: datasets that the template reads, and what they are called outside, where that differs.
        parameters: names of parameters, likewise.
    """
    read = template.inputs()
    given = {name for name in read if name.startswith("params:")}
    of_parameters = {**{name: name for name in given}, "params:cell": f"params:{cell.parameter}", **(parameters or {})}
    return Pipeline(
        template,
        namespace=cell.namespace,
        inputs={name: (inputs or {}).get(name, name) for name in read - given - CELL_INPUTS},
        parameters={name: of_parameters[name] for name in given},
    )
