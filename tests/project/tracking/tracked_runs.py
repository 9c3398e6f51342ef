"""A cell and a report, run with the hook as a Kedro session runs them, and what MLflow has then."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Node, Pipeline
from pydantic import BaseModel

from deephash_pipeline.project.tracking import MlflowTracking
from deephash_pipeline.training import TrainingInterrupted


class Options(BaseModel):
    epochs: int = 3
    schedule: dict[str, str] = {"name": "one_cycle"}


METRICS = {"method": "itq", "code_length": 12, "mean_average_precision": 0.5, "queries": np.int64(7), "note": "text"}
METRICS |= {"validation_mean_average_precision": None, "chance_level": float("nan"), "finished": True}
CURVES = pd.DataFrame({"kind": ["radius"], "point": [0], "precision": [1.0], "recall": [0.25]})
MAP_TABLE = pd.DataFrame({"method": ["ITQ"], "12": [0.5]})


def evaluate(options, seed):
    return METRICS, CURVES


def report(metrics):
    return MAP_TABLE, go.Figure(go.Scatter(x=[12], y=[0.5])), "<h1>Report</h1>"


CELL = Pipeline(
    [Node(evaluate, ["params:options", "params:seed"], ["metrics", "curves"], name="evaluate")],
    namespace="itq.b12",
    parameters={"params:options", "params:seed"},
)
REPORTING = Pipeline(
    [Node(report, "metrics", ["map_table", "figure_map", "report"], name="report")],
    inputs={"metrics": "itq.b12.metrics"},
)
PIPELINE = Pipeline([CELL, REPORTING])


def stored_catalog(benchmark, options=None, **stored):
    options = options or Options()
    parameters = {"experiment": {"benchmark": benchmark}, "options": options, "seed": 42, "unused": 1}
    catalog = DataCatalog()
    for name, value in {"parameters": parameters, "params:options": options, "params:seed": 42, **stored}.items():
        catalog[name] = MemoryDataset(value, copy_mode="assign")
    return catalog


def run(project, catalog, pipeline=PIPELINE, env="mnist"):
    """Do what a Kedro session does around the runner."""
    hook = MlflowTracking()
    run_params = {"project_path": project.as_posix(), "pipeline_names": ["evaluation", "reporting"], "env": env}
    hook.before_pipeline_run(run_params=run_params, pipeline=pipeline, catalog=catalog)
    try:
        for node in pipeline.nodes:
            hook.before_node_run(node=node)
            outputs = node.run({name: catalog.load(name) for name in node.inputs})
            for name, value in outputs.items():
                catalog[name] = MemoryDataset(value, copy_mode="assign")
            hook.after_node_run(node=node, catalog=catalog)
    except (ArithmeticError, TrainingInterrupted) as error:
        hook.on_pipeline_error(error=error, pipeline=pipeline, catalog=catalog)
        return
    hook.after_pipeline_run(pipeline=pipeline, catalog=catalog)


def runs(client, benchmark):
    experiment = client.get_experiment_by_name(benchmark)
    found = client.search_runs([experiment.experiment_id])
    parents = [run for run in found if "mlflow.parentRunId" not in run.data.tags]
    children = [run for run in found if "mlflow.parentRunId" in run.data.tags]
    assert len(parents) == 1
    assert all(child.data.tags["mlflow.parentRunId"] == parents[0].info.run_id for child in children)
    return parents[0], children
