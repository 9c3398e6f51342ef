"""The folder of an index: files of its own and of others, its hasher, and pictures that are nowhere else."""

import json
import os
from threading import Timer

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import HammingIndex
from deephash_pipeline.photographs import EncodedDatabase, ImageIndex, write_index
from tests.cli.test_search import one_line

DIGITS, MNIST = "pretrained:digits-48", "pretrained:mnist-48"


@pytest.fixture(scope="module")
def hasher():
    return ImageHasher.pretrained("digits-48")


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (3, 8, 8), dtype=np.uint8)


def files_below(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("stranger", ["holiday.png", "pictures/mine.png", "segments/notes.txt", "2019/1.png"])
def test_an_index_is_not_replaced_where_there_are_files_of_others(command, index, photos, stranger):
    (index / stranger).parent.mkdir(exist_ok=True)
    (index / stranger).write_bytes(b"the only copy")
    before = files_below(index)
    message = one_line(command("index", "build", index, "--hasher", MNIST, "--anew", photos / "3"))
    assert f"has {stranger.partition('/')[0]}" in message
    assert files_below(index) == before
    # A writer clears away what killed ones have left, and that alone.
    with ImageIndex.open(index) as opened:
        opened.compact()
    assert (index / stranger).read_bytes() == b"the only copy"


def test_an_index_stays_as_it_was_where_nothing_takes_its_place(command, index, photos):
    before = files_below(index)
    result = command("index", "build", index, "--hasher", MNIST, "--anew", photos / "3" / "broken.png")
    assert result.exit_code == 1
    assert f"nothing was added to {index}" in result.output
    assert files_below(index) == before
    assert [path.name for path in index.parent.iterdir()] == [index.name]


def test_an_index_is_replaced_behind_a_link_and_keeps_the_pictures_that_are_nowhere_else(
    command, index, photos, tmp_path
):
    with ImageIndex.open(index) as opened:
        picture = opened.keep_picture(Image.open(photos / "0" / "0000.png"))
        opened.add(["uploaded"], [photos / "0" / "0000.png"], [picture], ["zero"])
    link = tmp_path / "link.index"
    link.symlink_to(index)
    result = command("index", "build", link, "--hasher", MNIST, "--anew", photos / "3")
    assert result.exit_code == 0, result.output
    assert link.is_symlink()
    with ImageIndex.open(link) as opened:
        assert "mnist" in repr(opened.hasher)
        item = opened.index.get("uploaded")
        np.testing.assert_array_equal(item.code, opened.hasher.encode([photos / "0" / "0000.png"])[0])
        assert (index / item.metadata["path"]).is_file()
        assert item.metadata["label"] == "zero"
        assert len(opened) == 1 + sum(path.name != "broken.png" for path in (photos / "3").iterdir())
    assert {path.name for path in tmp_path.iterdir()} == {index.name, link.name}


def test_a_link_to_nothing_is_refused(command, photos, tmp_path):
    (tmp_path / "link.index").symlink_to(tmp_path / "nothing")
    one_line(command("index", "build", tmp_path / "link.index", "--hasher", DIGITS, photos))


def test_the_index_of_a_run_is_made_anew_without_the_pictures_it_had(hasher, tmp_path, images):
    folder, codes = tmp_path / "run.index", hasher.encode(images)
    pictures = images[:, np.newaxis]
    write_index(folder, EncodedDatabase(hasher, ["a", "b", "c"], codes, pictures, ["x", "y", "cafe\u0301"]))
    again = write_index(folder, EncodedDatabase(hasher, ["a", "b", "c"], codes, pictures, ["x", "y", "cafe\u0301"]))
    assert (again.added, again.there) == (0, 3)
    # Of other images, as after another split: those of the run before have gone.
    write_index(folder, EncodedDatabase(hasher, ["a", "d", "e"], ~codes, pictures, ["x", "y", "z"]))
    with ImageIndex.open(folder, read_only=True) as opened:
        assert list(opened) == ["a", "d", "e"]
    assert len(list((folder / "pictures").iterdir())) == 3


@pytest.mark.parametrize("read_only", [True, False])
def test_another_hasher_in_the_folder_of_an_index_is_noticed(index, read_only):
    ImageHasher.pretrained("mnist-48").save(index / "hasher.safetensors")
    with pytest.raises(InputError, match="is not the hasher that made the codes of this index"):
        ImageIndex.open(index, read_only)
    with pytest.raises(InputError, match="is not the hasher that made"):
        ImageIndex.create_or_open(index, ImageHasher.pretrained("mnist-48"))


def test_a_path_in_an_index_leads_to_no_file_outside_it(hasher, tmp_path, images):
    (tmp_path / "mine.png").write_bytes(b"the only copy")
    with ImageIndex.create(tmp_path / "x.index", hasher) as opened:
        opened.add(["a"], images[:1], ["pictures/../../mine.png"])
        opened.remove(["a"])
    assert (tmp_path / "mine.png").exists()


@pytest.mark.parametrize("of", [list, tuple, np.array, pd.Series, iter])
def test_ids_paths_and_labels_are_taken_in_any_sequence_and_written_as_text(hasher, images, of):
    with ImageIndex(hasher, HammingIndex(48)) as opened:
        opened.add(of([1, 2, 3]), images, of(["a.png", "b.png", "c.png"]), of([3, 5, 5]))
        assert list(opened) == ["1", "2", "3"]
        assert opened.labels() == ["3", "5"]
        assert sorted(name for name, _ in opened.search(images[:1], 3, opened.labelled([5]))[0]) == ["2", "3"]
        assert opened.remove(of([1])) == 1


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([3.0, 5.0, 5.0], "label 3.0 is float: give text or whole numbers, or None"),
        ([True, False, True], "label True is bool"),
        (pd.Series(["a", np.nan, "b"]), "label nan is float"),
        ("abc", "labels are 'abc': give a list"),
        (np.zeros((3, 1)), "give a list"),
        (["a"], "has 1 values for 3 items"),
    ],
)
def test_what_is_no_text_is_refused(hasher, images, labels, message):
    with ImageIndex(hasher, HammingIndex(48)) as opened:
        with pytest.raises(InputError, match=message):
            opened.add(["a", "b", "c"], images, labels=labels)
        assert len(opened) == 0


def test_a_label_that_is_not_there_is_said_to_be_unknown_and_has_one_form(command, hasher, images, tmp_path):
    with ImageIndex.create(tmp_path / "x.index", hasher) as opened:
        opened.add(["a", "b", "c"], images, labels=["cafe\u0301", "dog", None])
    for label in ("cafe\u0301", "caf\u00e9"):
        result = command("search", tmp_path / "x.index", "--id", "b", "--label", label, "--json")
        assert {row["id"] for row in json.loads(result.stdout)} == {"a"}
    message = one_line(command("search", tmp_path / "x.index", "--id", "a", "--label", "dog", "--label", "dgo"))
    assert "no image has the label `dgo`: do you mean `dog`?" in message


def test_an_exchange_that_was_broken_off_names_the_index(command, index, photos):
    former = index.with_name(f".{index.name}.former")
    search = ("search", index, photos / "3" / "0003.png")
    os.rename(index, former)
    for arguments in (search, ("index", "build", index, "--hasher", DIGITS, photos)):
        assert "was being replaced when that was broken off: `mv " in one_line(command(*arguments))
    # One that goes on takes a moment.
    Timer(0.2, os.rename, (former, index)).start()
    assert command(*search).exit_code == 0
