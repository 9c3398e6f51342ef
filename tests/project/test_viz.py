"""What Kedro-Viz writes to files is whole, though pipelines are laid out late."""

import json
import subprocess
import sys

from deephash_pipeline.pipeline_registry import register_pipelines
from tests.conftest import copied_project

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
