"""Summary that a run prints at its end."""

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from rich.console import Console
from rich.table import Table

from deephash_pipeline.pipelines.names import FIELD, MEASURED_CELLS
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.project.replicate import REPLICATE, replicate_of

REPORT_PREFIXES = ("", f"{FIELD}.", f"{MEASURED_CELLS}.")
"""What stands before `map_table` and `report`."""
METRICS_SUFFIX = ".metrics"


class ResultTable:
    """Prints the mAP table and where to look further, if the run has made the table; else the mAP of its cells."""

    @hook_impl
    def after_pipeline_run(
        self, pipeline: Pipeline, catalog: CatalogProtocol[Any, Any], run_params: dict[str, Any]
    ) -> None:
        """Print to standard output."""
        made, console = pipeline.all_outputs(), Console()
        prefix = next((name for name in REPORT_PREFIXES if {f"{name}map_table", f"{name}report"} <= made), None)
        if prefix is None:
            cells = sorted(name for name in made if name.endswith(METRICS_SUFFIX))
            for line in (*_scores(cells, catalog, run_params), *_notes(cells, catalog)):
                console.print(line, soft_wrap=True, highlight=False)
            return
        frame = catalog.load(f"{prefix}map_table")
        benchmark = catalog.load("params:experiment").benchmark
        table = Table(title=f"Mean average precision on {benchmark}, by code length in bits")
        for column in frame.columns:
            table.add_column(column, justify="left" if column == "method" else "right", no_wrap=column != "method")
        for row in frame.itertuples(index=False):
            table.add_row(*(_printed(value) if isinstance(value, float) else str(value) for value in row))
        console.print(table)
        for line in _notes(sorted(name for name in pipeline.datasets() if name.endswith(METRICS_SUFFIX)), catalog):
            console.print(line, soft_wrap=True, highlight=False)
        env = run_params.get("env")
        for line in (
            f"Report      {_shown(catalog.get(f'{prefix}report'))}",
            f"Pipelines   kedro viz run{f' --env={env}' if env else ''}   (http://127.0.0.1:4141)",
            "MLflow      mlflow server --backend-store-uri sqlite:///mlflow.db --artifacts-destination mlartifacts",
        ):
            console.print(line, soft_wrap=True)


def _shown(page: Any) -> str:
    """Give the path of a page, from the folder of the command where it lies in it."""
    return os.path.relpath(page.filepath) if isinstance(page, AtomicFileDataset) and not page.remote else str(page)


def _printed(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{value:.4f}"


def _scores(names: Iterable[str], catalog: CatalogProtocol[Any, Any], run_params: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each method of some cells with its mAP, and one that says how to put all beside each other."""
    from deephash_pipeline.reports.cells import cell_metric, cell_protocol  # noqa: PLC0415 - Plotly, at every command

    scores: dict[str, list[str]] = defaultdict(list)
    for metrics in (catalog.load(name) for name in names if catalog.exists(name)):
        score = cell_metric(metrics, cell_protocol(metrics).metric)
        scores[metrics["method"]].append(f"{_printed(score)} ({metrics['code_length']} bits)")
    for method, own in scores.items():
        yield f"{method}: mean average precision {', '.join(own)}"
    if scores:
        env, replicate = run_params.get("env"), replicate_of(run_params.get("runtime_params") or {})
        options = (f" --env={env}" * bool(env), f" --params={REPLICATE}={replicate}" * (replicate > 1))
        yield f"All cells beside each other: kedro run --pipelines={MEASURED_CELLS}{''.join(options)}"


def _notes(names: Iterable[str], catalog: CatalogProtocol[Any, Any]) -> list[str]:
    """Say which cells have learned next to nothing."""
    from deephash_pipeline.reports.notes import notes_on_cells  # noqa: PLC0415 - as above

    return notes_on_cells((catalog.load(name) for name in names if catalog.exists(name)), {})
