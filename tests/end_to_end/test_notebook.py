import re
from pathlib import Path

import numpy as np
import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytestmark = pytest.mark.complete

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "explore_results.ipynb"
PLOTLY = "application/vnd.plotly.v1+json"


@pytest.fixture(scope="module")
def notebook():
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def outputs(notebook, finished_project):
    """Run the notebook on the results of the small run, and collect what it shows."""
    client = nbclient.NotebookClient(
        nbformat.from_dict(notebook), timeout=120, resources={"metadata": {"path": str(finished_project)}}
    )
    executed = client.execute()
    return [output for cell in executed.cells if cell.cell_type == "code" for output in cell.outputs]


def test_the_notebook_is_stored_without_outputs(notebook):
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


def test_the_notebook_names_no_benchmark_but_in_its_first_cell(notebook):
    first, *others = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert first.startswith("env = None")
    assert not any(name in source for source in others for name in ("digits", "mnist", "data/"))


def test_the_notebook_shows_tables_figures_and_pictures(outputs):
    shown = [output.data for output in outputs if "data" in output]
    assert sum(PLOTLY in data for data in shown) == 5
    assert sum("image/png" in data for data in shown) == 1
    assert sum("data:image/png;base64," in data.get("text/html", "") for data in shown) == 1
    assert sum("<table" in data.get("text/html", "") for data in shown) == 4


def test_the_notebook_encodes_and_searches_as_the_run_did(outputs, finished_project):
    table = outputs[-1].data["text/html"]
    found = [int(distance) for distance in re.findall(r"<th>\d+</th>\s*<td>(\d+)</td>", table)]
    with np.load(next(finished_project.glob("data/07_model_output/digits/deephash/b32/codes.npz"))) as codes:
        distances = np.bitwise_count(codes["database"] ^ codes["query"][0]).sum(axis=1)
    assert found == sorted(distances)[:10]


def test_the_notebook_prints_no_warning(outputs):
    errors = [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]
    assert errors == []
