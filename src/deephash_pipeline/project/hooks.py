"""Kedro hooks: what a run prints at its end, and the last good weights of a training that diverged."""

import logging
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Self

from kedro.framework.hooks import hook_impl
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from rich.console import Console
from rich.table import Table

from deephash_pipeline.common.cell import FIELD, MEASURED_CELLS
from deephash_pipeline.common.project_folder import project_root
from deephash_pipeline.training import TrainingDiverged

logger = logging.getLogger(__name__)

REPORTED = ("", f"{FIELD}.", f"{MEASURED_CELLS}.")
"""What stands before `map_table` and `report`."""
METRICS = ".metrics"


class LastGoodWeights:
    """Keeps what a training had learned before its loss ceased to be finite."""

    def in_worker(self) -> Self:
        """Give the hook for another process, where the training is."""
        return self

    @hook_impl
    def on_node_error(self, error: Exception, catalog: CatalogProtocol[Any, Any]) -> None:
        """Save the weights that the error carries."""
        if isinstance(error, TrainingDiverged):
            dataset = catalog[f"{error.description}.last_good_weights"]
            dataset.save(error.weights)
            logger.info("%s: the weights of the last good epoch are in %s", error.description, dataset)


class ResultTable:
    """Prints the mAP table and where to look further, if the run has made the table; else the mAP of its cells."""

    @hook_impl
    def after_pipeline_run(
        self, pipeline: Pipeline, catalog: CatalogProtocol[Any, Any], run_params: dict[str, Any]
    ) -> None:
        """Print to standard output."""
        made, console = pipeline.all_outputs(), Console()
        prefix = next((name for name in REPORTED if {f"{name}map_table", f"{name}report"} <= made), None)
        if prefix is None:
            cells = sorted(name for name in made if name.endswith(METRICS))
            for line in _scores(cells, catalog, run_params.get("env")):
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
        page = f"data/08_reporting/{benchmark}/{prefix.replace('.', '/')}report.html"
        for line in _where_to_look(page, run_params.get("env"), make=not prefix):
            console.print(line, soft_wrap=True)


def _printed(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{value:.4f}"


def _scores(names: Iterable[str], catalog: CatalogProtocol[Any, Any], env: str | None) -> Iterator[str]:
    """Yield a line for each method of some cells with its mAP, and one that says how to put all beside each other."""
    from deephash_pipeline.reports.cells import cell_metric, cell_protocol  # noqa: PLC0415 - Plotly, at every command

    scores: dict[str, list[str]] = defaultdict(list)
    for metrics in (catalog.load(name) for name in names if catalog.exists(name)):
        score = cell_metric(metrics, cell_protocol(metrics).metric)
        scores[metrics["method"]].append(f"{_printed(score)} ({metrics['code_length']} bits)")
    for method, own in scores.items():
        yield f"{method}: mean average precision {', '.join(own)}"
    if scores:
        yield f"All cells beside each other: kedro run --pipelines={MEASURED_CELLS}{f' --env={env}' if env else ''}"


def _where_to_look(page: str, environment: str | None, make: bool) -> Iterator[str]:
    """Yield a line for the report, the pipelines and the runs; a project that `new` has made has no Makefile."""
    if (project_root() / "Makefile").is_file():
        env = f" ENV={environment}" if environment else ""
        yield f"Report      make report{env}   ({page})" if make else f"Report      {page}"
        yield f"Pipelines   make viz{env}      (http://127.0.0.1:4141)"
        yield f"MLflow      make mlflow{env}   (http://127.0.0.1:5000)"
        return
    env = f" --env={environment}" if environment else ""
    yield f"Report      {page}"
    yield f"Pipelines   kedro viz run{env}   (http://127.0.0.1:4141)"
    yield "MLflow      mlflow server --backend-store-uri sqlite:///mlflow.db --artifacts-destination mlartifacts"
