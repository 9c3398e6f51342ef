"""The catalog hands a training the folder of its checkpoints, and keeps its hands off it."""

import pytest
from kedro.io import DatasetError

from deephash_pipeline.project.datasets import CheckpointsDataset
from deephash_pipeline.training.resuming.checkpoint import CheckpointFolder


def test_a_training_gets_the_folder_the_interval_and_the_code_it_runs_from(tmp_path):
    folder = CheckpointsDataset(str(tmp_path / "checkpoints"), seconds_between=30).load()
    assert isinstance(folder, CheckpointFolder)
    assert folder.folder == tmp_path / "checkpoints"
    assert folder.seconds_between == 30
    assert folder.provenance["version"]


def test_loading_makes_nothing_and_needs_nothing(tmp_path):
    dataset = CheckpointsDataset(str(tmp_path / "not there"), seconds_between=0)
    assert dataset.exists()
    assert dataset.load().load() is None
    assert list(tmp_path.iterdir()) == []


def test_no_node_can_have_it_as_its_output(tmp_path):
    with pytest.raises(DatasetError, match="is read only to the catalog"):
        CheckpointsDataset(str(tmp_path), seconds_between=0).save("weights")
