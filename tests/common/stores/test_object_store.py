"""Object stores, against moto's S3 server on the loopback device: encoding, datasets, and what must be on a disk."""

import os

import numpy as np
import pytest
from kedro.io import DatasetError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import walk
from deephash_pipeline.common.stores import names_in, read_bytes, write_whole
from deephash_pipeline.encoding import CodeFolder, EncodingWorkers, Source, encode_source
from deephash_pipeline.project.datasets import (
    AtomicDataset,
    CheckpointsDataset,
    FilesDataset,
    ImageSourceDataset,
    NumpyDataset,
)
from deephash_pipeline.provenance import Origin
from deephash_pipeline.provenance.manifest import DamagedError
from tests.encoding.conftest import BROKEN, code_of, folder, hasher, pictures, write_tar

pytestmark = pytest.mark.complete
__all__ = ["code_of", "folder", "hasher", "pictures"]
BUCKET = "s3://bucket"


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory):
    """An empty bucket on a server of this process, and a cache of copies of its own."""
    server_of_moto = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    server = server_of_moto.ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("bucket")
        yield
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@pytest.fixture(scope="module")
def stored_pictures(pictures):
    for name, content in pictures.items():
        write_whole(f"{BUCKET}/pictures/{name}", content)
    return f"{BUCKET}/pictures"


def test_a_bucket_is_walked_like_a_folder(stored_pictures, pictures):
    assert list(walk(stored_pictures)) == sorted(pictures)


@pytest.mark.parametrize("codes", [f"{BUCKET}/codes", None])
def test_pictures_of_a_store_have_the_codes_and_the_files_of_those_of_a_disk(
    codes, stored_pictures, folder, hasher, code_of, tmp_path
):
    source = Source(stored_pictures)
    report = encode_source(
        hasher, source, codes or tmp_path, images_per_block=16, workers=EncodingWorkers(1, device="cpu")
    )
    assert (report.blocks, report.images) == (3, 38)
    blocks = list(CodeFolder(codes or tmp_path))
    assert [name for block in blocks for name in block.names] == list(code_of)
    assert [code for block in blocks for code in block.codes.tolist()] == list(code_of.values())
    assert {broken.name for block in blocks for broken in block.broken} == BROKEN
    again = encode_source(hasher, source, codes or tmp_path, workers=EncodingWorkers(device="cpu"))
    assert (again.there, again.images) == (3, 0)


def test_a_picture_costs_one_request_whatever_its_name(pictures, hasher, tmp_path, caplog):
    caplog.set_level("INFO", logger="werkzeug")
    content = next(iter(pictures.values()))
    names = ["a [1].png", "b*.png", "c?.png"]
    for name in names:
        write_whole(f"{BUCKET}/named/{name}", content)
    caplog.clear()
    report = encode_source(hasher, Source(f"{BUCKET}/named"), tmp_path, workers=EncodingWorkers(1, device="cpu"))
    assert report.images == 3
    assert [name for block in CodeFolder(tmp_path) for name in block.names] == names
    asked = [record.getMessage() for record in caplog.records if ".png" in record.getMessage()]
    assert len(asked) == 3
    assert all('"GET ' in request for request in asked)


def test_shards_are_streamed_from_a_store(pictures, hasher, code_of, tmp_path):
    write_tar(tmp_path / "shard.tar", {name: pictures[name] for name in sorted(pictures)[:5]})
    write_whole(f"{BUCKET}/shards/shard.tar", (tmp_path / "shard.tar").read_bytes())
    [block] = Source(f"{BUCKET}/shards/*.tar").blocks(16)
    assert (block.shard, block.size) == ("shard.tar", (tmp_path / "shard.tar").stat().st_size)
    report = encode_source(
        hasher, Source(f"{BUCKET}/shards"), tmp_path / "codes", workers=EncodingWorkers(1, device="cpu")
    )
    assert report.images == 5
    [made] = CodeFolder(tmp_path / "codes")
    assert made.codes.tolist() == [code_of[name] for name in sorted(pictures)[:5]]


def test_a_dataset_of_a_store_gives_back_what_was_saved_and_is_mapped_into_memory():
    dataset = NumpyDataset(f"{BUCKET}/arrays/z.npy", mmap_mode="r")
    with pytest.raises(DatasetError, match=r"s3://bucket/arrays/z\.npy is not there: run the stage"):
        dataset.load()
    dataset.save(np.arange(6))
    mapped = dataset.load()
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(mapped, np.arange(6))
    assert dataset.load().filename == mapped.filename
    NumpyDataset(f"{BUCKET}/arrays/z.npy").save(np.arange(3))
    np.testing.assert_array_equal(dataset.load(), np.arange(3))
    np.testing.assert_array_equal(mapped, np.arange(6))


def test_a_dataset_of_kedro_is_stored_as_on_a_disk(tmp_path):
    for address in (f"{BUCKET}/tables/a.json", str(tmp_path / "a.json")):
        AtomicDataset(address, dataset={"type": "json.JSONDataset"}).save({"itq": 0.5})
    assert read_bytes(f"{BUCKET}/tables/a.json") == (tmp_path / "a.json").read_bytes()
    assert AtomicDataset(f"{BUCKET}/tables/a.json", dataset={"type": "json.JSONDataset"}).load() == {"itq": 0.5}
    assert not os.path.exists("s3:")


def test_a_manifest_is_stored_beside_and_what_is_not_its_file_is_refused():
    address = f"{BUCKET}/arrays/codes.npy"
    dataset = NumpyDataset(address)
    dataset.expect("codes", Origin("encode"))
    dataset.save(np.arange(4))
    stored = sorted(name for name in names_in(f"{BUCKET}/arrays") if name.startswith("codes"))
    assert stored == ["codes.npy", "codes.npy.provenance.json"]
    assert dataset.check().origin == Origin("encode")
    write_whole(address, read_bytes(address)[:-1] + b"\x09")
    with pytest.raises(DamagedError, match=r"s3://bucket/arrays/codes\.npy is damaged"):
        dataset.check()
    with pytest.raises(DatasetError, match=r"s3://bucket/arrays/codes\.npy is damaged"):
        dataset.load()
    dataset.save(np.arange(4))
    assert dataset.check() is None
    with pytest.raises(FileNotFoundError):
        NumpyDataset(f"{BUCKET}/nowhere.npy").check()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: CheckpointsDataset(f"{BUCKET}/checkpoints", 30.0), "checkpoints"),
        (lambda: FilesDataset(f"{BUCKET}/cells", "*.json", {}), "files that are found by a pattern"),
        (lambda: ImageSourceDataset(f"{BUCKET}/raw", {"kind": "digits"}), "raw images of a run"),
    ],
)
def test_what_must_be_on_a_disk_is_refused_in_a_store_and_nothing_is_written(make, what):
    with pytest.raises(InputError, match=f"{what} cannot be in an object store: give a folder"):
        make()
    assert not os.path.exists("s3:")


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("s3://no-such-bucket/x.npy", "is not there: run the stage that makes it"),
        ("unknown://bucket/x.npy", "unknown://bucket/x.npy cannot be reached"),
    ],
)
def test_a_store_that_cannot_be_reached_is_one_line(address, message):
    with pytest.raises((InputError, DatasetError), match=message) as refused:
        NumpyDataset(address).load()
    # Kedro puts the dataset in a line before; the command shows the cause alone.
    assert "\n" not in str(refused.value.__cause__ or refused.value)
