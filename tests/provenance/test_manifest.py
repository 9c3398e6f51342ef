"""A file and its manifest come and go together, and neither is accepted without the other as it was written."""

import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from kedro.io import DatasetError

from deephash_pipeline.project.datasets import NumpyDataset
from deephash_pipeline.provenance import Origin, digests
from deephash_pipeline.provenance.digests import file_digest
from deephash_pipeline.provenance.manifest import DamagedError, checked, manifest_path, read_manifest
from tests.project.datasets.kinds import json_dataset
from tests.provenance.situations import flipped

ORIGIN = Origin(
    node="evaluation.itq.b12.measure",
    recipe="0" * 32,
    inputs={"itq.b12.codes": "1" * 32},
    parameters={"experiment.seed": 42, "reporting.notes": ["größer als ½"], "rate": 0.1},
)


def saved(path):
    dataset = json_dataset(str(path))
    dataset.expect("itq.b12.metrics", ORIGIN)
    dataset.save({"mean_average_precision": 0.5})
    return path


def test_a_manifest_says_what_the_file_is_and_what_it_was_made_from(tmp_path):
    path = saved(tmp_path / "metrics.json")
    manifest = read_manifest(path)
    assert (manifest.name, manifest.size) == ("itq.b12.metrics", path.stat().st_size)
    assert manifest.digest == file_digest(path)
    assert manifest.origin == ORIGIN


def test_what_is_saved_outside_a_run_has_no_manifest_and_takes_away_the_old_one(tmp_path):
    path = saved(tmp_path / "metrics.json")
    json_dataset(str(path)).save({"mean_average_precision": 0.6})
    assert read_manifest(path) is None
    assert json_dataset(str(path)).load() == {"mean_average_precision": 0.6}


def test_an_origin_is_good_for_one_save(tmp_path):
    dataset = json_dataset(str(tmp_path / "metrics.json"))
    dataset.expect("itq.b12.metrics", ORIGIN)
    dataset.save({})
    dataset.save({})
    assert read_manifest(tmp_path / "metrics.json") is None


def test_a_writer_that_fails_leaves_the_former_file_and_its_manifest(tmp_path):
    path = saved(tmp_path / "metrics.json")
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    dataset = json_dataset(str(path))
    dataset.expect("itq.b12.metrics", ORIGIN)
    with pytest.raises(DatasetError):
        dataset.save({"mean_average_precision": float("nan")})
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("of", [Path, manifest_path])
def test_a_flipped_bit_of_a_file_or_of_its_manifest_is_noticed(tmp_path, of):
    path = saved(tmp_path / "metrics.json")
    flipped(1)(of(path), None, random.Random(0))
    with pytest.raises(DatasetError, match=r"damaged.*delete it, and a run makes it again") as caught:
        json_dataset(str(path)).load()
    assert isinstance(caught.value.__cause__, DamagedError)


def test_a_manifest_that_was_edited_is_refused(tmp_path):
    manifest = manifest_path(saved(tmp_path / "metrics.json"))
    manifest.write_text(manifest.read_text().replace('"experiment.seed": 42', '"experiment.seed": 7'))
    with pytest.raises(DamagedError, match=r"manifest of .* is damaged"):
        read_manifest(tmp_path / "metrics.json")


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "\0", '{"content": 3, "seal": ""}', "[" * 100_000])
def test_what_is_no_manifest_is_refused_in_one_line(tmp_path, text):
    path = saved(tmp_path / "metrics.json")
    manifest_path(path).write_text(text)
    with pytest.raises(DamagedError) as caught:
        read_manifest(path)
    assert "\n" not in str(caught.value)


# Large files, whose digests are remembered.


@pytest.fixture
def large(tmp_path, monkeypatch):
    monkeypatch.setattr(digests, "REMEMBERED_BYTES", 100)
    dataset = NumpyDataset(str(tmp_path / "images.npy"), mmap_mode="r")
    dataset.expect("training_images", ORIGIN)
    dataset.save(np.arange(1000))
    return tmp_path / "images.npy"


def reads(monkeypatch):
    seen = []
    digest = digests.content_digest
    monkeypatch.setattr(digests, "content_digest", lambda path: seen.append(path) or digest(path))
    return seen


def test_a_large_file_is_read_once_in_a_process_and_again_when_it_changes(large, monkeypatch):
    seen = reads(monkeypatch)
    dataset = NumpyDataset(str(large), mmap_mode="r")
    dataset.load()
    dataset.load()
    assert seen == []
    os.utime(large)
    dataset.load()
    dataset.load()
    assert seen == [large]


def test_another_process_reads_a_large_file_whole(large):
    status = large.stat()
    flipped(1)(large, None, random.Random(0))
    os.utime(large, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert checked(large) is not None
    digests._REMEMBERED.clear()
    with pytest.raises(DamagedError):
        checked(large)


def test_a_large_file_is_read_again_where_it_was_copied_to(large, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    for path in list(tmp_path.glob("images.npy*")):
        shutil.copy(path, tmp_path / "elsewhere")
    seen = reads(monkeypatch)
    copy = tmp_path / "elsewhere/images.npy"
    np.testing.assert_array_equal(NumpyDataset(str(copy), mmap_mode="r").load(), np.arange(1000))
    assert seen == [copy]
