"""Files of others are found again in every folder that a command writes to, and no command writes in their place."""

import shutil
import sqlite3
import subprocess
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import temporary_name
from deephash_pipeline.deephash.export import export_onnx
from deephash_pipeline.encoding import CodeFolder
from deephash_pipeline.photographs import EncodedDatabase, ImageIndex, write_index
from deephash_pipeline.project.datasets.atomic_file import cache_folder, local_copy
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


STRANGERS_IN_AN_INDEX = [".hasher.old", ".hash_function.notes", f"pictures/{'0a' * 16}.png"]
STRANGERS_IN_AN_INDEX += [
    f"segments/{'0a' * 16}",
    f"segments/{'0a' * 16}.z",
    f"columns/{'0a' * 16}.npz",
    "columns/a.npz",
]


@pytest.mark.parametrize("name", STRANGERS_IN_AN_INDEX)
def test_an_index_with_files_of_others_is_not_replaced(command, index, photos, name):
    (index / name).parent.mkdir(exist_ok=True)
    (index / name).write_bytes(CONTENT)
    build = ("index", "build", index, photos / "3", "--hasher", "pretrained:mnist-48", "--anew")
    assert f"has {name}, which is of no index" in one_line(command(*build))
    # Nor is it deleted by a writer, which tidies up after those that were killed.
    with ImageIndex.open(index, device="cpu") as images:
        images.remove([images.index.ids()[0]])
        images.compact()
    assert (index / name).read_bytes() == CONTENT
    assert command("index", "info", index).exit_code == 0


def test_what_a_killed_writer_has_left_of_a_segment_is_deleted(index):
    """Its file is there first, and may be empty; the features come after it."""
    left = [index / "segments" / name for name in ("0a" * 16, "0b" * 16, f"{'0b' * 16}.z")]
    for path, content in zip(left, (b"", b"deephash codes 1\n...", b"features"), strict=True):
        path.write_bytes(content)
    ImageIndex.open(index, device="cpu").close()
    assert not [path for path in left if path.exists()]


def test_pictures_of_an_index_itself_are_replaced_with_it(command, index, photos, hasher):
    with ImageIndex.open(index, device="cpu") as images:
        for name, known in (("known", True), ("of a killed service", False)):
            path = images.keep_picture(Image.new("L", (8, 8)))
            if known:
                images.add([name], np.zeros((1, 1, 8, 8), dtype=np.uint8), [path])
    # What has no mark, and is not in the ledger, is of others.
    Image.new("L", (8, 8)).save(index / path)
    assert "is of no index" in one_line(
        command("index", "build", index, photos / "3", "--hasher", "pretrained:mnist-48", "--anew")
    )
    (index / path).unlink()
    result = command("index", "build", index, photos / "3", "--hasher", "pretrained:mnist-48", "--anew")
    assert result.exit_code == 0, result.output
    assert len(list((index / "pictures").iterdir())) == 1


def test_nothing_is_left_of_an_index_that_did_not_come_about(command, photos, tmp_path):
    build = ("index", "build", tmp_path / "x.index")
    assert command(*build, photos / "3" / "broken.png", "--hasher", "pretrained:mnist-48").exit_code == 1
    assert not (tmp_path / "x.index").exists()
    # One of a killed build has no items either.
    ImageIndex.create(tmp_path / "x.index", ImageHasher.pretrained("mnist-48", device="cpu")).close()
    assert command(*build, photos / "3", "--hasher", "pretrained:digits-48").exit_code == 0


def test_a_former_index_whose_replacer_was_killed_is_deleted_by_the_next_writer(index):
    former = index.with_name(f".{index.name}.former")
    shutil.copytree(index, former)
    ImageIndex.open(index, read_only=True, device="cpu").close()
    assert former.exists()
    ImageIndex.open(index, device="cpu").close()
    assert not former.exists()


def test_an_output_is_no_input_and_a_hasher_is_known_by_its_format(command, index, photos, hasher, tmp_path):
    hasher.save(own := tmp_path / "own.safetensors")
    script, device = tmp_path / "script.py", Path("/dev/null")
    script.write_text("from deephash_pipeline.hasher import x")
    before = {path: path.read_bytes() for path in (own, script, index / "hasher.safetensors", index / "index.sqlite")}
    picture = next((photos / "3").glob("0*.png"))
    before[picture] = picture.read_bytes()
    for arguments in (
        ("export-onnx", own, "-o", own),
        ("export-onnx", "pretrained:digits-48", "-o", own),
        ("export-onnx", "pretrained:digits-48", "-o", script),
        ("export-onnx", "pretrained:digits-48", "-o", index / "hasher.safetensors"),
        ("export-onnx", "pretrained:digits-48", "-o", device),
        ("hasher", "digits", "itq.b48", "-o", script),
        ("hasher", "digits", "itq.b48", "-o", index / "hasher.safetensors"),
        ("pairs", index, "--radius", 0, "-o", index / "index.sqlite", "--overwrite"),
        ("pairs", index, "--radius", 0, "-o", script, "--overwrite"),
        ("pairs", index, "--radius", 0, "-o", device, "--overwrite"),
        ("duplicates", photos, "--html", picture, "--overwrite"),
        ("duplicates", photos, "--csv", script, "--overwrite"),
        ("duplicates", photos, "--json", index / "index.sqlite", "--overwrite"),
        ("duplicates", photos, "--remove-list", device, "--overwrite"),
        ("duplicates", photos, "--remove-list", script, "--overwrite"),
    ):
        assert command(*arguments).exit_code == 1, arguments
    for write in (hasher.save, lambda path: export_onnx(hasher, path)):
        for path in (script, device):
            with pytest.raises(InputError):
                write(path)
    assert all(path.read_bytes() == content for path, content in before.items())
    assert device.is_char_device()
    hasher.save(own)


def test_a_project_that_does_not_fit_leaves_nothing(command, tmp_path, monkeypatch):
    def full(*_, **__):
        raise shutil.Error([("conf", "p/conf", "[Errno 28] No space left on device: 'p/conf/base'")])

    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        with monkeypatch.context() as patched:
            patched.setattr(shutil, "copy", full)
            assert "cannot be written (No space left on device): make room" in one_line(command("new", tmp_path / name))
    assert [path.name for path in tmp_path.rglob("*")] == ["empty"]
    assert command("new", tmp_path / "new").exit_code == 0


def test_copies_of_files_in_stores_give_way_beside_files_of_others(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    import fsspec  # noqa: PLC0415

    store = fsspec.filesystem("memory")
    store.pipe_file("/bucket/codes.npz", b"1")
    copy = local_copy("memory://bucket/codes.npz")
    there = [put(folder) for folder in (copy.parent, copy.parent.parent, cache_folder())]
    store.pipe_file("/bucket/codes.npz", b"22")
    assert local_copy("memory://bucket/codes.npz").read_bytes() == b"22"
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
        folders[1].with_name("b24") / "study.db",
    ]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"format": 2, "seal": "0a"}' if path.name.endswith(".provenance.json") else "")
    (folders[1].with_name("b24") / "study.db").write_text("SQLite format 3\0")
    hasher = ImageHasher.pretrained("digits-48", device="cpu")
    with ImageIndex.create(index / "new", hasher, features=True) as images:
        images.keep_picture(Image.new("L", (8, 8)))
        images.add(["a"], np.zeros((1, 1, 8, 8), dtype=np.uint8))
        images.compact()
    (index / "new" / "hasher.safetensors").unlink()
    for path in (index / "new").iterdir():
        path.rename(index / path.name)
    made += [path for path in index.rglob("*") if path.is_file() and path not in made]
    assert sum(path.suffix == ".z" for path in made) == 1
    others = [folders[1] / "checkpoints/checkpoint-500", index / "index.sqlite.backup", folders[1] / "study.db"]
    others += [index / "pictures" / f"{'0a' * 16}.png", index / "segments" / ("0a" * 16)]
    others += [folders[0] / "theirs.npz", folders[0] / "theirs.npz.provenance.json", tmp_path / "mlflow.db"]
    for path in others[:-1]:
        path.write_text('{"made_by": "another tool"}')
    with closing(sqlite3.connect(others[-1])) as database:
        database.execute("create table registered_models (name)")
        database.execute("insert into registered_models values ('mine')")
        database.commit()
    there = [put(path.parent) for path in made] + [put(tmp_path / "data/08_reporting")]
    done = subprocess.run(["make", "--silent", "clean"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert not [path for path in made if path.exists()]
    assert all(str(path.relative_to(tmp_path)) in done.stdout for path in made)
    assert all(path.exists() for path in others)
    assert all(check() for check in there)
