"""Files of others are found again in every folder that a command writes to, and no command writes in their place."""

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import temporary_name
from deephash_pipeline.project.datasets.atomic_file import cache_folder, fetched
from deephash_pipeline.search.encoding import CodeFolder
from deephash_pipeline.search.images import EncodedDatabase, write_index
from tests.cli.test_search import one_line

ROOT = Path(__file__).resolve().parent.parent.parent
CONTENT = b"the only copy"
NAMES = ("notes.txt", "photo.png", ".notes.2019", ".codes-of-mine", "mine.npy", "checkpoint.json", "a/b.safetensors")


def put(folder):
    """Files of others; returns a check that they are there."""
    paths = [folder / name for name in NAMES]
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENT)
    return lambda: [str(path) for path in paths if not path.is_file() or path.read_bytes() != CONTENT] == []


@pytest.fixture(scope="module")
def hasher():
    return ImageHasher.pretrained("digits-48")


def test_codes_are_encoded_beside_nothing(command, photos, hasher, tmp_path):
    there = put(tmp_path / "codes")
    assert "is not empty" in one_line(command("encode", "pretrained:digits-48", photos, "-o", tmp_path / "codes"))
    assert there()
    # A hasher is no sign of codes.
    (tmp_path / "models").mkdir()
    ImageHasher.pretrained("mnist-48").save(tmp_path / "models" / "hasher.safetensors")
    mine = (tmp_path / "models" / "hasher.safetensors").read_bytes()
    assert "is not empty" in one_line(command("encode", "pretrained:digits-48", photos, "-o", tmp_path / "models"))
    assert (tmp_path / "models" / "hasher.safetensors").read_bytes() == mine


def test_codes_that_are_there_go_on_beside_files_of_others(command, photos, tmp_path):
    arguments = ("encode", "pretrained:digits-48", photos, "-o", tmp_path / "codes", "--workers", 1)
    assert command(*arguments).exit_code == 0
    [block] = (tmp_path / "codes").glob("codes-*")
    there, left = put(tmp_path / "codes"), temporary_name(block)
    left.touch()
    assert command(*arguments).exit_code == 0
    CodeFolder(tmp_path / "codes").sweep()
    assert there()
    assert not left.exists()


@pytest.mark.parametrize("arguments", [["export-onnx", "pretrained:digits-48"], ["hasher", "digits", "itq.b48"]])
def test_a_hasher_is_written_in_the_place_of_a_hasher_alone(command, tmp_path, arguments):
    there = put(tmp_path)
    for name in NAMES:
        assert "was not made by what would replace it" in one_line(command(*arguments, "-o", tmp_path / name))
    assert there()


def test_a_project_and_an_index_are_made_in_empty_folders(command, photos, tmp_path):
    there = put(tmp_path)
    assert "is not empty" in one_line(command("new", tmp_path))
    for more in ([], ["--anew"]):
        message = one_line(command("index", "build", tmp_path, "--hasher", "pretrained:digits-48", photos, *more))
        assert "is not empty" in message
    assert there()


def test_an_index_of_a_run_is_refused_beside_files_of_others(hasher, tmp_path):
    pictures = np.zeros((1, 1, 8, 8), dtype=np.uint8)
    codes = hasher.encode(pictures)
    write_index(tmp_path / "index", EncodedDatabase(hasher, ["a"], codes, pictures, ["x"]))
    there = put(tmp_path / "index")
    with suppress(InputError):
        write_index(tmp_path / "index", EncodedDatabase(hasher, ["a"], ~codes, pictures, ["x"]))
    assert there()


def test_copies_of_files_in_stores_give_way_beside_files_of_others(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    import fsspec  # noqa: PLC0415

    store = fsspec.filesystem("memory")
    store.pipe_file("/bucket/codes.npz", b"1")
    copy = fetched("memory://bucket/codes.npz")
    there = [put(folder) for folder in (copy.parent, copy.parent.parent, cache_folder())]
    store.pipe_file("/bucket/codes.npz", b"22")
    assert fetched("memory://bucket/codes.npz").read_bytes() == b"22"
    assert not copy.exists()
    assert all(check() for check in there)


def test_make_clean_removes_what_runs_have_made(tmp_path):
    shutil.copy(ROOT / "Makefile", tmp_path)
    index = tmp_path / "data/07_model_output/digits/deephash/b48/index"
    folders = [tmp_path / "data/02_intermediate/digits", tmp_path / "data/06_models/digits/deephash/b48", index]
    made = [
        *(folder / name for folder in folders for name in ("codes.npz", "codes.npz.provenance.json")),
        *(folders[0] / "decoded" / name for name in ("training.npy", "training.digests")),
        folders[1] / "checkpoints/checkpoint-000000001.json",
        index / "index.sqlite",
        index / "pictures" / f"{'0a' * 16}.png",
        index / "segments" / ("0a" * 16),
    ]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    there = [put(path.parent) for path in made] + [put(tmp_path / "data/08_reporting")]
    subprocess.run(["make", "--silent", "clean"], cwd=tmp_path, check=True)
    assert not [path for path in made if path.exists()]
    assert all(check() for check in there)
