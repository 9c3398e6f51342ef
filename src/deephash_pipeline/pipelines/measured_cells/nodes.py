"""Tables and a page of the cells that were run, whichever they are."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.pipelines.grid import METHOD_GROUPS
from deephash_pipeline.reports.cells import cell_protocol
from deephash_pipeline.reports.figures import figure_map_by_code_length
from deephash_pipeline.reports.notes import notes_on_cells
from deephash_pipeline.reports.page import Report, ReportingParameters, render_report
from deephash_pipeline.reports.tables import (
    by_other_protocols,
    comparison_table,
    map_table,
    metrics_table,
    protocols_table,
)


def report_measured_cells(
    evaluated_cells: Mapping[str, Mapping[str, Any]],
    names: dict[str, str],
    parameters: ReportingParameters,
    experiment: Experiment,
) -> tuple[pd.DataFrame, pd.DataFrame, str]:
    """Lay out the metrics of all cells that are there.

    Args:
        evaluated_cells: metrics of cells, as many as there are, by their files' names.
        names: method -> name; cells of others are left out.
        parameters: notes of the page.
        experiment: configuration that says which benchmark it is.

    Returns:
        All metrics, a row for each cell; the mAP table, methods by code lengths; one self-contained page.

    Raises:
        InputError: no cell was evaluated.
    """
    # Those on hand-crafted descriptors have a table of their own.
    cells = [cell for cell in evaluated_cells.values() if cell["method"] in names]
    scores = map_table(cells, names)
    report = Report(
        experiment.benchmark,
        cell_protocol(cells[0]),
        {"Network": experiment.network, "Cells": f"{len(cells)}", **parameters.written},
        scores,
        comparison_table(cells, experiment.benchmark, names),
        names,
        by_other_protocols(protocols_table(cells, []), names),
        {"map_by_code_length": figure_map_by_code_length(cells, names, METHOD_GROUPS)},
        notes=[*notes_on_cells(cells, names), *parameters.notes],
    )
    page = render_report(f"Measured cells on {experiment.benchmark}", report)
    return metrics_table(cells, names), scores.reset_index(), page
