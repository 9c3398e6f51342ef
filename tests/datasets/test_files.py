from pathlib import Path

import pandas as pd
import pytest
from kedro.io import DataCatalog, DatasetError

from deephash_pipeline.datasets import CSVDataset, FilesDataset, JSONDataset, MarkdownDataset

JSON = "deephash_pipeline.datasets.JSONDataset"


def test_every_file_that_matches_is_read_under_its_path(tmp_path: Path) -> None:
    for cell in ("ksh/b48", "itq/b12"):
        JSONDataset(str(tmp_path / cell / "metrics.json")).save({"cell": cell})
    JSONDataset(str(tmp_path / "metrics.json")).save({"of": "all cells"})
    CSVDataset(str(tmp_path / "itq/b12/curves.csv")).save(pd.DataFrame({"a": [1]}))
    files = FilesDataset(str(tmp_path), "*/*/metrics.json", JSON).load()
    assert list(files.items()) == [
        ("itq/b12/metrics.json", {"cell": "itq/b12"}),
        ("ksh/b48/metrics.json", {"cell": "ksh/b48"}),
    ]


def test_where_nothing_was_run_there_is_nothing_and_no_error(tmp_path: Path) -> None:
    dataset = FilesDataset(str(tmp_path / "absent"), "*/*/metrics.json", JSON)
    assert dataset.exists()
    assert dataset.load() == {}


def test_half_written_files_of_a_killed_run_are_left_out(tmp_path: Path) -> None:
    JSONDataset(str(tmp_path / "itq/b12/.metrics.123.json")).save({})
    assert FilesDataset(str(tmp_path), "*/*/metrics.json", JSON).load() == {}


def test_files_are_read_only(tmp_path: Path) -> None:
    catalog = DataCatalog({"files": FilesDataset(str(tmp_path), "*.json", JSON)})
    with pytest.raises(DatasetError, match="read only"):
        catalog.save("files", {})


def test_a_markdown_page_comes_back_as_it_was(tmp_path: Path) -> None:
    dataset = MarkdownDataset(str(tmp_path / "page.md"))
    dataset.save("| mAP | \N{EN DASH} |\n")
    assert dataset.load() == "| mAP | \N{EN DASH} |\n"
