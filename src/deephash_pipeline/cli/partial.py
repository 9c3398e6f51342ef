"""Runs that name no cell: evaluation is of those that have codes, indexing of one."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from kedro.framework.project import pipelines

from deephash_pipeline.cli.provenance import INDEXING, NARROWING, open_catalog
from deephash_pipeline.common.cell import FULL_AT_A_GLANCE
from deephash_pipeline.pipelines.grid import INDEXED

logger = logging.getLogger(__name__)

EVALUATION = "evaluation"
CODES = ".codes"


def only_cells_that_are_there(options: Mapping[str, Any]) -> dict[str, Any]:
    """Narrow an evaluation of all cells to those that have codes, and an indexing of all to one cell.

    Args:
        options: of Kedro's ``run``.

    Returns:
        The options: as they are, if they name nodes themselves or all cells are there or none is; else for the cells
        that are there. What all cells make together, `all_metrics`, is made only if these are those of
        `FULL_AT_A_GLANCE`. An index has the pictures of the whole database, so one is made, that of `INDEXED`.
    """
    narrowed = any(options.get(name) for name in NARROWING)
    if list(options.get("pipelines") or []) == [INDEXING] and not narrowed:
        logger.info("the index of %s is made; --namespaces=itq.b32 makes that of another cell", INDEXED.namespace)
        return {**options, "namespaces": [f"{INDEXING}.{INDEXED.namespace}"]}
    if list(options.get("pipelines") or []) != [EVALUATION] or narrowed:
        return dict(options)
    catalog = open_catalog(options.get("env"), options.get("params"), options.get("conf_source"))
    wanted = codes_read(EVALUATION)
    there = {name for name in wanted if catalog.exists(name)}
    if there in (set(), wanted):
        return dict(options)
    logger.warning("%d of %d cells are evaluated; without codes: %s", len(there), len(wanted), listed(wanted - there))
    if there == codes_read(FULL_AT_A_GLANCE):
        return {**options, "pipelines": [FULL_AT_A_GLANCE], "namespaces": [EVALUATION]}
    return {**options, "namespaces": sorted(f"{EVALUATION}.{name.removesuffix(CODES)}" for name in there)}


def codes_read(pipeline: str) -> set[str]:
    """Name the codes that the evaluation in a pipeline reads."""
    nodes = (node for node in pipelines[pipeline].nodes if (node.namespace or "").partition(".")[0] == EVALUATION)
    return {name for node in nodes for name in node.inputs if name.endswith(CODES)}


def listed(codes: Iterable[str]) -> str:
    """List cells by code length.

    Example:
        >>> listed({"itq.b12.codes", "ksh.b12.codes", "itq.b48.codes"})
        'b12 of itq, ksh; b48 of itq'
    """
    by_length: dict[str, list[str]] = {}
    for name in sorted(codes):
        method, length = name.removesuffix(CODES).split(".")
        by_length.setdefault(length, []).append(method)
    return "; ".join(f"{length} of {', '.join(methods)}" for length, methods in sorted(by_length.items()))
