import base64
import inspect
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go  # type: ignore[import-untyped]
import pytest
from kedro.io import DatasetError
from PIL import Image

from deephash_pipeline.datasets import CSVDataset, HTMLDataset, JSONDataset, PlotlyDataset, PNGDataset

METRICS = {"method": "itq", "code_length": 12, "mean_average_precision": 0.8630402236153302, "validation": None}
TABLE = pd.DataFrame({"method": ["LSH", "ITQ, rotated"], "12": [0.42098354070922549, 0.1 + 0.2], "16": [np.nan, 1.0]})


def test_a_document_comes_back_as_it_was(tmp_path: Path) -> None:
    dataset = JSONDataset(str(tmp_path / "metrics.json"))
    dataset.save(METRICS)
    assert dataset.load() == METRICS


def test_the_order_in_which_a_document_was_made_does_not_show_in_its_file(tmp_path: Path) -> None:
    JSONDataset(str(tmp_path / "a.json")).save(METRICS)
    JSONDataset(str(tmp_path / "b.json")).save(dict(reversed(METRICS.items())))
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b.json").read_text()


def test_a_document_that_no_other_program_could_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="not JSON compliant"):
        JSONDataset(str(tmp_path / "metrics.json")).save({"loss": float("inf")})


def test_a_table_comes_back_to_the_last_digit(tmp_path: Path) -> None:
    dataset = CSVDataset(str(tmp_path / "table.csv"))
    dataset.save(TABLE)
    pd.testing.assert_frame_equal(dataset.load(), TABLE, check_exact=True)


def test_a_figure_comes_back_as_it_was(tmp_path: Path) -> None:
    figure = go.Figure(go.Scatter(x=[12, 16], y=np.array([0.5, 0.25]), name="ITQ"))
    dataset = PlotlyDataset(str(tmp_path / "figure.json"))
    dataset.save(figure)
    assert dataset.load().to_dict() == figure.to_dict()


def test_a_picture_comes_back_as_it_was(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(256, size=(7, 5, 3)).astype(np.uint8)
    dataset = PNGDataset(str(tmp_path / "picture.png"))
    dataset.save(Image.fromarray(pixels))
    np.testing.assert_array_equal(np.asarray(dataset.load()), pixels)


def test_a_page_comes_back_as_it_was(tmp_path: Path) -> None:
    dataset = HTMLDataset(str(tmp_path / "page.html"))
    dataset.save("<p>größer als ½</p>\n")
    assert dataset.load() == "<p>größer als ½</p>\n"


@pytest.mark.parametrize(
    ("kind", "preview"),
    [
        (JSONDataset, "JSONPreview"),
        (CSVDataset, "TablePreview"),
        (PlotlyDataset, "PlotlyPreview"),
        (PNGDataset, "ImagePreview"),
    ],
)
def test_kedro_viz_knows_each_preview_by_the_name_of_its_annotation(kind: Any, preview: str) -> None:
    assert inspect.signature(kind.preview).return_annotation.__name__ == preview


def test_the_preview_of_a_document_is_its_text(tmp_path: Path) -> None:
    dataset = JSONDataset(str(tmp_path / "metrics.json"))
    dataset.save(METRICS)
    assert json.loads(dataset.preview()) == METRICS


def test_the_preview_of_a_table_is_its_first_rows_without_what_json_cannot_hold(tmp_path: Path) -> None:
    dataset = CSVDataset(str(tmp_path / "table.csv"))
    dataset.save(pd.concat([TABLE] * 100, ignore_index=True))
    preview: dict[str, Any] = dataset.preview()
    assert preview["columns"] == ["method", "12", "16"]
    assert len(preview["index"]) == len(preview["data"]) == 50
    assert preview["data"][0][0] == "LSH"
    assert preview["data"][0][2] is None
    json.dumps(preview, allow_nan=False)


def test_the_preview_of_a_figure_is_what_plotly_draws(tmp_path: Path) -> None:
    dataset = PlotlyDataset(str(tmp_path / "figure.json"))
    dataset.save(go.Figure(go.Scatter(x=[12], y=[0.5]), layout={"title": {"text": "mAP"}}))
    preview: dict[str, Any] = dataset.preview()
    assert preview["data"][0]["type"] == "scatter"
    assert preview["layout"]["title"]["text"] == "mAP"


def test_the_preview_of_a_picture_is_the_file_in_base64(tmp_path: Path) -> None:
    dataset = PNGDataset(str(tmp_path / "picture.png"))
    dataset.save(Image.new("L", (4, 3), color=200))
    with Image.open(io.BytesIO(base64.b64decode(dataset.preview()))) as shown:
        assert (shown.format, shown.size, shown.getpixel((0, 0))) == ("PNG", (4, 3), 200)
