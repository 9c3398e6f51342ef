import os

import numpy as np
import pytest
import torch
from kedro.io import DatasetError

from deephash_pipeline.project.datasets import CodesDataset, EncoderDataset, NumpyDataset, TensorsDataset
from tests.project.datasets.kinds import csv_dataset, json_dataset, plotly_dataset, text_dataset

FILE_DATASETS = [
    *((csv_dataset, "table.csv"), (CodesDataset, "codes.npz"), (EncoderDataset, "encoder.safetensors")),
    *((text_dataset, "page.html"), (json_dataset, "document.json"), (NumpyDataset, "array.npy")),
    *((plotly_dataset, "figure.json"), (TensorsDataset, "weights.safetensors")),
]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_and_its_folders_are_made(tmp_path):
    dataset = text_dataset(str(tmp_path / "a" / "b" / "text.txt"))
    assert not dataset.exists()
    dataset.save("content")
    assert dataset.exists()
    assert dataset.load() == "content"
    assert names(tmp_path / "a" / "b") == ["text.txt"]


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        (csv_dataset, "table.csv", "no frame"),
        (json_dataset, "document.json", {"mean_average_precision": float("nan")}),
        (NumpyDataset, "array.npy", np.array([{"an": "object"}])),
        (TensorsDataset, "weights.safetensors", {"weight": "no tensor"}),
        (EncoderDataset, "encoder.safetensors", "no encoder"),
        (plotly_dataset, "figure.json", "no figure"),
    ],
)
def test_content_of_the_wrong_type_is_refused_and_leaves_the_former_file(tmp_path, kind, name, content):
    (tmp_path / name).write_text("former")
    with pytest.raises(DatasetError):
        kind(str(tmp_path / name)).save(content)
    assert (tmp_path / name).read_text() == "former"
    assert names(tmp_path) == [name]


@pytest.mark.parametrize(("kind", "name"), FILE_DATASETS)
def test_a_missing_file_is_named_with_the_command_that_makes_it(tmp_path, kind, name):
    with pytest.raises(DatasetError) as caught:
        kind(str(tmp_path / name)).load()
    message = str(caught.value)
    assert str(tmp_path / name) in message
    assert "kedro run --pipelines=full" in message
    assert "\n" not in message


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
@pytest.mark.parametrize(("kind", "content"), [(text_dataset, "content"), (TensorsDataset, {"weight": torch.ones(2)})])
def test_the_mode_of_a_file_is_what_the_umask_asks_for(tmp_path, kind, content, umask, mode):
    path = tmp_path / "file"
    before = os.umask(umask)
    try:
        kind(str(path)).save(content)
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode
