"""What Kedro-Viz is made light by says the same as Kedro-Viz, and is written whole."""

import json
import subprocess
import sys

import pandas as pd
from kedro.io import DataCatalog
from kedro.pipeline import Node, Pipeline
from kedro_viz.data_access.repositories import ModularPipelinesRepository

from deephash_pipeline.pipeline_registry import register_pipelines
from deephash_pipeline.project.viz import Namespaces, statistics
from tests.conftest import copied_project
from tests.project.datasets.kinds import csv_dataset, json_dataset

SAVED = """
import sys, fsspec
from pathlib import Path
from kedro.framework.project import pipelines
from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project
from kedro_viz import server
from kedro_viz.api.rest.responses.save_responses import save_api_responses_to_fs

bootstrap_project(Path.cwd())
with KedroSession.create() as session:
    catalog = session.load_context().catalog
chosen = {name: pipelines[name] for name in ("hand_crafted", "comparison", "paper_tables")}
server.populate_data(server.data_access_manager, catalog, chosen, {})
assert len(server.data_access_manager._waiting) == len(chosen)
save_api_responses_to_fs("saved", fsspec.filesystem("file"), False)
"""


def test_namespaces_are_those_of_kedro_viz():
    pipeline = register_pipelines()["hand_crafted"]
    theirs, ours = ModularPipelinesRepository(), Namespaces()
    theirs.populate_tree(pipeline)
    ours.populate_tree(pipeline)
    assert len(theirs.tree) > 5
    assert ours.tree == theirs.tree
    assert ours.node_mod_pipeline_map == theirs.node_mod_pipeline_map


def test_what_is_written_to_files_has_the_nodes_of_all_pipelines(tmp_path):
    project = copied_project(tmp_path / "project")
    done = subprocess.run([sys.executable, "-c", SAVED], cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = {path.name for path in (project / "saved/api/nodes").iterdir()}
    shown = {}
    for name in ("hand_crafted", "comparison", "paper_tables"):
        content = json.loads((project / "saved/api/pipelines" / name).read_text())
        shown[name] = {node["id"] for node in content["nodes"]}
        assert len(shown[name]) >= len(register_pipelines()[name].nodes)
    assert files == set().union(*shown.values())


def test_statistics_are_those_of_the_files_whichever_run_has_made_them(tmp_path):
    table, other = csv_dataset(str(tmp_path / "map.csv")), json_dataset(str(tmp_path / "metrics.json"))
    table.save(pd.DataFrame({"method": ["ITQ", "LSH"], "12": [0.5, 0.25], "24": [0.75, 0.5]}))
    catalog = DataCatalog({"map_table": table, "metrics": other})
    pipeline = Pipeline([Node(lambda found: found, "metrics", "map_table", name="tabulate")])
    size = (tmp_path / "map.csv").stat().st_size
    assert {name: found.stats for name, found in statistics(catalog, pipeline).items()} == {
        "map_table": {"rows": 2, "columns": 3, "file_size": size}
    }
