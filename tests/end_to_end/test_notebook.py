import ast
import re
from pathlib import Path

import numpy as np
import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytestmark = pytest.mark.complete

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"
PLOTLY = "application/vnd.plotly.v1+json"


@pytest.fixture(scope="module")
def notebook():
    return nbformat.read(NOTEBOOKS / "explore_results.ipynb", as_version=4)


@pytest.fixture(scope="module")
def outputs(notebook, finished_project):
    """Run the notebook on the results of the small run, and collect what it shows."""
    return shown_by(notebook, finished_project)


def shown_by(notebook, folder):
    client = nbclient.NotebookClient(
        nbformat.from_dict(notebook), timeout=300, resources={"metadata": {"path": str(folder)}}
    )
    executed = client.execute()
    return [output for cell in executed.cells if cell.cell_type == "code" for output in cell.outputs]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path):
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)


def test_the_notebook_on_own_images_goes_from_a_folder_to_an_answer_of_the_service(tmp_path):
    notebook = nbformat.read(NOTEBOOKS / "own_images.ipynb", as_version=4)
    [settings] = [cell for cell in notebook.cells if "effort = 0.2" in cell.source]
    settings.source = settings.source.replace("effort = 0.2", "effort = 0.02")
    *shown, answer = shown_by(notebook, tmp_path)
    assert sum(PLOTLY in output.data for output in shown if "data" in output) == 1
    [nearest, *_] = ast.literal_eval(answer.data["text/plain"])
    assert nearest[1] == 0


def test_the_notebook_names_no_benchmark_but_in_its_first_cell(notebook):
    first, *others = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert first.startswith("env = None")
    assert not any(name in source for source in others for name in ("digits", "mnist", "data/"))


def test_the_notebook_shows_tables_figures_and_pictures(outputs):
    shown = [output.data for output in outputs if "data" in output]
    figures = [data.get("text/html", "") for data in shown if PLOTLY in data]
    assert ["Plotly.newPlot" in page for page in figures] == [True] * 5
    assert sum("image/png" in data for data in shown) == 1
    # Before the first figure stands the JavaScript that draws them.
    pages = [page for data in shown if "plotly" not in (page := data.get("text/html", "")).lower()]
    assert sum("data:image/png;base64," in page for page in pages) == 1
    assert sum("<table" in page for page in pages) == 4


def test_the_notebook_encodes_and_searches_as_the_run_did(outputs, finished_project):
    table = outputs[-1].data["text/html"]
    found = [int(distance) for distance in re.findall(r"<th>\d+</th>\s*<td>(\d+)</td>", table)]
    with np.load(next(finished_project.glob("data/07_model_output/digits/deephash/b32/codes.npz"))) as codes:
        distances = np.bitwise_count(codes["database"] ^ codes["query"][0]).sum(axis=1)
    assert found == sorted(distances)[:10]


def test_the_notebook_prints_no_warning(outputs):
    errors = [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]
    assert errors == []
