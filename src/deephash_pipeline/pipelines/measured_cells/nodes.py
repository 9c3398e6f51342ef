"""Tables and a page of the cells that were run, whichever they are."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from deephash_pipeline import reports
from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.pipelines.grid import METHOD_GROUPS
from deephash_pipeline.pipelines.shared.reporting import ReportingParameters


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
        experiment: says which benchmark it is.

    Returns:
        All metrics, a row for each cell; the mAP table, methods by code lengths; one self-contained page.

    Raises:
        InputError: no cell was evaluated.
    """
    # Those on hand-crafted descriptors have a table of their own.
    cells = [cell for cell in evaluated_cells.values() if cell["method"] in names]
    metrics_table, map_table = reports.metrics_table(cells, names), reports.map_table(cells, names)
    report = reports.Report(
        experiment.benchmark,
        reports.cell_protocol(cells[0]),
        {"Network": experiment.network, "Cells": f"{len(cells)}", **parameters.written},
        map_table,
        reports.comparison_table(cells, experiment.benchmark, names),
        names.values(),
        reports.by_other_protocols(reports.protocols_table(cells, []), names),
        {"map_by_code_length": reports.figure_map_by_code_length(cells, names, METHOD_GROUPS)},
        notes=parameters.notes,
    )
    page = reports.render_report(f"Measured cells on {experiment.benchmark}", report)
    return metrics_table, map_table.reset_index(), page
