"""Kedro hooks of the command line: no misspelt parameters, a line for each stage, the result at the end of a run."""

import logging
import math
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Self

from kedro.framework.hooks import hook_impl
from kedro.framework.project import pipelines
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node
from kedro_viz.integrations.kedro.hooks_utils import generate_timestamp, hash_node, write_events
from kedro_viz.integrations.kedro.run_hooks import create_dataset_event
from rich.console import Console
from rich.table import Table

from deephash_pipeline.common.cell import FIELD, MEASURED_CELLS, SEEDS
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.project_folder import project_root
from deephash_pipeline.pipelines.grid import every_cell
from deephash_pipeline.retrieval.protocols import require_protocol
from deephash_pipeline.training import TrainingDiverged

logger = logging.getLogger(__name__)

AT_ALL_LENGTHS = {"full", "__default__", FIELD, SEEDS, "without_labels"}
"""Pipelines that take longest to make."""
REPORTED = ("", f"{FIELD}.", f"{MEASURED_CELLS}.")
"""What stands before `map_table` and `report`."""
METRICS = ".metrics"


class KnownParameters:
    """Refuses parameters that nothing reads, a misspelt group for example, and a protocol that there is not."""

    @hook_impl
    def before_pipeline_run(self, catalog: CatalogProtocol[Any, Any]) -> None:
        """Compare all configured parameters with those that any pipeline reads."""
        read = parameters_read()
        parameters = catalog.load("parameters")
        unread = sorted(unread_parameters(parameters, read))
        if unread:
            below = sorted(name for name in read if name.startswith(f"{unread[0]}."))
            if below:
                raise InputError(f"`{unread[0]}` is a group: name a value in it, such as {below[0]}")
            groups = sorted({name.partition(".")[0] for name in read})
            raise InputError(f"unknown parameter `{unread[0]}`: nothing reads it; the groups are {', '.join(groups)}")
        if "protocol" in parameters:
            require_protocol(parameters["protocol"])


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


class StageLog:
    """Says when a stage is done and how long its nodes took together."""

    def __init__(self) -> None:
        self.remaining: Counter[str] = Counter()
        self.nodes: Counter[str] = Counter()
        self.seconds: dict[str, float] = {}
        self.started: dict[str, float] = {}

    @hook_impl
    def before_pipeline_run(self, pipeline: Pipeline) -> None:
        """Count the nodes of each stage."""
        self.nodes = Counter(stage_of(node) for node in pipeline.nodes)
        self.remaining = self.nodes.copy()
        self.seconds = dict.fromkeys(self.nodes, 0.0)

    @hook_impl
    def before_node_run(self, node: Node) -> None:
        """Note the time."""
        self.started[node.name] = time.perf_counter()

    @hook_impl
    def after_node_run(self, node: Node) -> None:
        """Log the stage when its last node is done."""
        stage = stage_of(node)
        self.seconds[stage] += time.perf_counter() - self.started[node.name]
        self.remaining[stage] -= 1
        if not self.remaining[stage]:
            nodes = "1 node" if self.nodes[stage] == 1 else f"{self.nodes[stage]} nodes"
            logger.info("%s: %s in %.1f s", stage, nodes, self.seconds[stage])


class WorkflowEvents:
    """Writes what Kedro-Viz shows as the workflow of the last run; its own hook knows sequential runs of everything."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.started: dict[str, float] = {}

    @hook_impl
    def before_pipeline_run(self) -> None:
        """Begin anew."""
        self.events = [{"event": "before_pipeline_run", "timestamp": generate_timestamp()}]

    @hook_impl
    def before_node_run(self, node: Node) -> None:
        """Note the time."""
        self.started[node.name] = time.perf_counter()

    @hook_impl
    def after_node_run(self, node: Node, catalog: CatalogProtocol[Any, Any]) -> None:
        """Note how long it took, and the size of what it has made."""
        duration = time.perf_counter() - self.started[node.name]
        self.events += [create_dataset_event("after_dataset_saved", name, node, catalog) for name in node.outputs]
        self.events.append({"event": "after_node_run", **named(node), "duration": duration, "status": "success"})

    @hook_impl
    def on_node_error(self, node: Node, error: Exception) -> None:
        """Note the error."""
        self.events.append({"event": "on_node_error", **named(node), "error": str(error)})

    @hook_impl
    def after_pipeline_run(self) -> None:
        """Write all events."""
        write_events([*self.events, {"event": "after_pipeline_run", "timestamp": generate_timestamp()}])

    @hook_impl
    def on_pipeline_error(self, error: Exception) -> None:
        """Write all events, and the error."""
        end = {"event": "on_pipeline_error", "timestamp": generate_timestamp(), "error": str(error)}
        write_events([*self.events, end])


def named(node: Node) -> dict[str, str]:
    """Name a node as Kedro-Viz does."""
    return {"node": node.name, "node_id": hash_node(node)}


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
    from deephash_pipeline.reports import cell_metric, cell_protocol  # noqa: PLC0415 - Plotly, at every command

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


def parameters_read() -> set[str]:
    """Name the parameters that any pipeline reads: but for the cells, they are the same at all code lengths."""
    inputs = set[str]().union(*(pipelines[name].inputs() for name in pipelines if name not in AT_ALL_LENGTHS))
    read = {name.removeprefix("params:") for name in inputs if name.startswith("params:")}
    return read | {cell.parameter for cell in every_cell()}


def unread_parameters(parameters: Mapping[str, Any], read: Collection[str], above: str = "") -> Iterator[str]:
    """Yield the dotted names of parameters that are neither read nor part of, nor a group of, what is read."""
    for key, value in parameters.items():
        name = f"{above}{key}"
        if name in read or key.startswith("_"):
            continue
        if isinstance(value, Mapping) and any(other.startswith(f"{name}.") for other in read):
            yield from unread_parameters(value, read, f"{name}.")
        else:
            yield name


def stage_of(node: Node) -> str:
    """Name the stage that a node belongs to: its one tag."""
    return next(iter(node.tags), node.name)
