"""A cell is one method at one code length; its metrics are a mapping of names to numbers.

All tables and figures read the cells through this module, so that they agree on order, names and what is refused.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.retrieval.protocols import Protocol, require_protocol

CellMetrics: TypeAlias = Mapping[str, Any]

ABSENT = "\N{EN DASH}"
"""What tables show where there is no number."""

CLASSIFIER_METHOD = "one_of_c"
"""Method key of the classifier's own 1-of-C code: C bits whatever the grid of code lengths."""


def cell_code_length(cell: CellMetrics) -> int:
    """Code length of a cell in bits."""
    return int(cell_metric(cell, "code_length"))


def cell_metric(cell: CellMetrics, name: str) -> float:
    """One metric of a cell as a float; None, which stands for "not measured", becomes NaN.

    Example:
        >>> cell_metric({"mean_average_precision": 0.5, "precision_at_1000": None}, "precision_at_1000")
        nan
    """
    return math.nan if cell[name] is None else float(cell[name])


def cell_protocol(cell: CellMetrics) -> Protocol:
    """Protocol that a cell was measured by; the paper's where none is named, as there was no other once.

    Example:
        >>> cell_protocol({"method": "itq"}).name, cell_protocol({"method": "itq", "protocol": "unseen"}).name
        ('paper', 'unseen')
    """
    return require_protocol(str(cell.get("protocol", "paper")))


def shared_protocol(cells: Iterable[CellMetrics]) -> Protocol:
    """Protocol of some cells, which stand in one column.

    Raises:
        InputError: there are several.
    """
    names = sorted({cell_protocol(cell).name for cell in cells})
    if len(names) > 1:
        raise InputError(f"cells were measured by {' and '.join(names)}: evaluate all of them by one protocol")
    return require_protocol(names[0])


def distinct_cells(metrics: Iterable[CellMetrics]) -> list[CellMetrics]:
    """The cells as they are given.

    Raises:
        InputError: one is repeated.
    """
    cells: dict[tuple[str, int], CellMetrics] = {}
    for cell in metrics:
        method, code_length = cell["method"], cell_code_length(cell)
        if (method, code_length) in cells:
            raise InputError(
                f"there are two cells of {method} at {code_length} bits: move copies of folders, such as {method}_old"
                " or b48_old, out of the benchmark's folder"
            )
        cells[method, code_length] = cell
    return [*cells.values()]


def grid_cells(metrics: Iterable[CellMetrics], display_names: Mapping[str, str]) -> list[CellMetrics]:
    """The cells of the grid (all but the classifier baseline), by order of the display names, then by code length.

    Raises:
        InputError: no cell at all, or, the classifier baseline included, a repeated cell or an unnamed method.
    """
    given = distinct_cells(metrics)
    order = {method: position for position, method in enumerate(display_names)}
    for cell in given:
        if cell["method"] not in order:
            raise InputError(f"there are metrics of {cell['method']!r}, which is no method with a name: leave them out")
    cells = [cell for cell in given if cell["method"] != CLASSIFIER_METHOD]
    if not cells:
        raise InputError("there are no metrics to report: evaluate at least one method first")
    return sorted(cells, key=lambda cell: (order[cell["method"]], cell_code_length(cell)))


def classifier_baseline_cell(metrics: Iterable[CellMetrics]) -> CellMetrics | None:
    """The cell of the 1-of-C code, or None if it was not evaluated."""
    return next((cell for cell in metrics if cell["method"] == CLASSIFIER_METHOD), None)


def shared_chance_level(cells: Sequence[CellMetrics]) -> float:
    """Mean average precision of constant codes; a property of the labels, so all cells must agree on it.

    Raises:
        InputError: the cells disagree, hence were not evaluated on the same database and queries.
    """
    levels = [cell_metric(cell, "chance_level") for cell in cells]
    if any(not math.isclose(level, levels[0], rel_tol=1e-6) for level in levels):
        raise InputError("cells differ in chance_level: evaluate all of them on the same database and queries")
    return levels[0]
