import pandas as pd
import pytest
from kedro.io import DataCatalog, DatasetError

from deephash_pipeline.project.datasets import FilesDataset
from tests.project.datasets.kinds import KINDS, csv_dataset, json_dataset

JSON = {"type": "deephash_pipeline.project.datasets.AtomicDataset", "dataset": KINDS["_json"]}


def test_every_file_that_matches_is_read_under_its_path(tmp_path):
    for cell in ("ksh/b48", "itq/b12"):
        json_dataset(str(tmp_path / cell / "metrics.json")).save({"cell": cell})
    json_dataset(str(tmp_path / "metrics.json")).save({"of": "all cells"})
    csv_dataset(str(tmp_path / "itq/b12/curves.csv")).save(pd.DataFrame({"a": [1]}))
    files = FilesDataset(str(tmp_path), "*/*/metrics.json", JSON).load()
    expected = [(f"{cell}/metrics.json", {"cell": cell}) for cell in ("itq/b12", "ksh/b48")]
    assert list(files.items()) == expected


def test_files_that_are_excluded_are_left_out(tmp_path):
    for cell in ("itq/b12", "descriptor_itq/b12"):
        json_dataset(str(tmp_path / cell / "metrics.json")).save({})
    files = FilesDataset(str(tmp_path), "*/*/metrics.json", JSON, exclude="descriptor_*")
    assert list(files.load()) == ["itq/b12/metrics.json"]
    assert files.names() == ["itq/b12/metrics.json"]


def test_where_nothing_was_run_there_is_nothing_and_no_error(tmp_path):
    dataset = FilesDataset(str(tmp_path / "absent"), "*/*/metrics.json", JSON)
    assert dataset.exists()
    assert dataset.load() == {}


def test_half_written_files_of_a_killed_run_are_left_out(tmp_path):
    json_dataset(str(tmp_path / "itq/b12/.metrics.123.json")).save({})
    assert FilesDataset(str(tmp_path), "*/*/*.json", JSON).load() == {}


def test_files_are_read_only(tmp_path):
    catalog = DataCatalog({"files": FilesDataset(str(tmp_path), "*.json", JSON)})
    with pytest.raises(DatasetError, match="read only"):
        catalog.save("files", {})
