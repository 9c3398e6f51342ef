import inspect
import json

import numpy as np
import orjson
import pandas as pd
import plotly.graph_objects as go
import pytest
from kedro.io import DataCatalog, DatasetError
from kedro_viz.models.flowchart.node_metadata import DataNodeMetadata
from kedro_viz.models.flowchart.nodes import GraphNode
from plotly.subplots import make_subplots

from deephash_pipeline.project.datasets import AtomicDataset
from tests.project.datasets.kinds import KINDS, csv_dataset, json_dataset, plotly_dataset, text_dataset

METRICS = {"method": "itq", "code_length": 12, "mean_average_precision": 0.8630402236153302, "validation": None}
TABLE = pd.DataFrame({"method": ["LSH", "ITQ, rotated"], "12": [0.42098354070922549, 0.1 + 0.2], "16": [np.nan, 1.0]})


def test_a_document_comes_back_as_it_was(tmp_path):
    dataset = json_dataset(str(tmp_path / "metrics.json"))
    dataset.save(METRICS)
    assert dataset.load() == json.loads(dataset.preview()) == METRICS


def test_a_table_comes_back_to_the_last_digit(tmp_path):
    dataset = csv_dataset(str(tmp_path / "table.csv"))
    dataset.save(TABLE)
    pd.testing.assert_frame_equal(dataset.load(), TABLE, check_exact=True)
    assert (tmp_path / "table.csv").read_text().splitlines()[0] == "method,12,16"


def test_a_figure_comes_back_as_it_was(tmp_path):
    figure = go.Figure(go.Scatter(x=[12, 16], y=np.array([0.5, 0.25]), name="ITQ"))
    dataset = plotly_dataset(str(tmp_path / "figure.json"))
    dataset.save(figure)
    assert dataset.load().to_dict() == figure.to_dict()
    assert dataset.preview()["data"][0]["type"] == "scatter"


def test_a_page_comes_back_as_it_was(tmp_path):
    dataset = text_dataset(str(tmp_path / "page.html"))
    dataset.save("<p>größer als ½</p>\n")
    assert dataset.load() == "<p>größer als ½</p>\n"
    assert (tmp_path / "page.html").read_bytes() == "<p>größer als ½</p>\n".encode()


def test_the_file_of_a_document_is_sorted_and_indented(tmp_path):
    json_dataset(str(tmp_path / "metrics.json")).save({"b": [1], "a": 0.1 + 0.2})
    assert (tmp_path / "metrics.json").read_text() == '{\n  "a": 0.30000000000000004,\n  "b": [\n    1\n  ]\n}'


def test_a_class_that_kedro_datasets_does_not_have_is_refused_when_the_catalog_is_made(tmp_path):
    with pytest.raises(DatasetError, match="CVSDataset"):
        AtomicDataset(str(tmp_path / "table.csv"), {"type": "pandas.CVSDataset"})


def test_it_is_made_from_an_entry_of_the_catalog(tmp_path):
    entry = {
        "type": "deephash_pipeline.project.datasets.AtomicDataset",
        "filepath": str(tmp_path / "table.csv"),
        "dataset": {**KINDS["_csv"], "save_args": {"sep": ";", "index": False}},
    }
    catalog = DataCatalog.from_config({"table": entry})
    catalog.save("table", TABLE)
    assert (tmp_path / "table.csv").read_text().startswith("method;12;16")
    assert "pandas.CSVDataset" in str(catalog["table"])


@pytest.mark.parametrize(
    ("kind", "preview"),
    [(json_dataset, "JSONPreview"), (csv_dataset, "TablePreview"), (plotly_dataset, "PlotlyPreview")],
)
def test_kedro_viz_knows_each_preview_by_the_name_of_its_annotation(tmp_path, kind, preview):
    annotation = inspect.signature(kind(str(tmp_path / "file.png")).preview).return_annotation
    assert getattr(annotation, "__name__", annotation) == preview


def test_kedro_viz_gets_the_preview_and_its_kind(tmp_path):
    table = csv_dataset(str(tmp_path / "table.csv"))
    table.metadata = {"kedro-viz": {"layer": "reporting", "preview_args": {"nrows": 1}}}
    table.save(TABLE)
    node = GraphNode.create_data_node("map_table", "map_table", "reporting", set(), table, None)
    shown = DataNodeMetadata(data_node=node)
    assert shown.preview_type == "TablePreview"
    assert json.loads(orjson.dumps(shown.preview)) == {
        "index": [0],
        "columns": ["method", "12", "16"],
        "data": [["LSH", 0.42098354070922549, None]],
    }


def test_headings_and_ticks_of_panels_are_small_in_a_preview_and_as_drawn_in_the_file(tmp_path):
    figure = make_subplots(cols=3, subplot_titles=["Shallow methods on z", "Deep rivals", "DeepHash"])
    for panel in (1, 2, 3):
        figure.add_scatter(x=[0, 1], y=[1, 0], row=1, col=panel)
    dataset = plotly_dataset(str(tmp_path / "figure.json"))
    dataset.save(figure)
    layout = dataset.preview()["layout"]
    # A panel has a quarter of 300 pixels, and a letter of 8 pixels takes 5.
    assert all(len(line) * 5 < 75 for heading in layout["annotations"] for line in heading["text"].split("<br>"))
    assert {layout[f"xaxis{panel}"]["tickfont"]["size"] for panel in ("", 2, 3)} == {8}
    assert dataset.load().layout.annotations[0].text == "Shallow methods on z"
