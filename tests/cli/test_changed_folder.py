"""`index build` on a folder that has changed brings the index to the folder's state, and computes only what is new."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline.deephash import ImageHasher
from deephash_pipeline.photographs import ImageIndex, Watch
from deephash_pipeline.photographs.watching import MANY_GONE
from tests.cli.conftest import write_digits
from tests.cli.test_search import one_line

DIGITS = ("--hasher", "pretrained:digits-48")


@pytest.fixture
def folder(photos, tmp_path):
    """A copy of sixty digits, to be changed."""
    shutil.copytree(photos, tmp_path / "photos")
    (tmp_path / "photos" / "3" / "broken.png").unlink()
    return tmp_path / "photos"


@pytest.fixture
def index(command, folder, tmp_path):
    assert command("index", "build", tmp_path / "x.index", *DIGITS, folder).exit_code == 0
    return tmp_path / "x.index"


@pytest.fixture
def encoded(monkeypatch):
    """Files that are encoded from now on."""
    files = []
    encode_batches = ImageHasher.encode_batches

    def counted(self, images, *arguments, **named):
        images = list(images)
        files.extend(Path(image).name for image in images)
        return encode_batches(self, images, *arguments, **named)

    monkeypatch.setattr(ImageHasher, "encode_batches", counted)
    return files


def pictures(folder):
    return sorted(path for path in folder.rglob("*.png"))


def contents(index):
    """Path -> code, of every item."""
    with ImageIndex.open(index, read_only=True) as images:
        return {item.metadata["path"]: item.code.tobytes() for item in images.index.items(list(images))}


def expected(folder):
    paths = pictures(folder)
    codes = ImageHasher.pretrained("digits-48").encode(paths)
    return {os.path.realpath(path): code.tobytes() for path, code in zip(paths, codes, strict=True)}


def test_new_gone_renamed_and_replaced_files_are_what_they_are_in_the_folder(command, folder, index, encoded):
    before = pictures(folder)
    write_digits(folder, range(60, 80))
    for path in before[:10]:
        path.unlink()
    for path in before[10:15]:
        path.rename(path.with_name(f"renamed-{path.name}"))
    (before[15]).write_bytes(before[40].read_bytes())
    write_digits(folder / "other", [100])
    shutil.move(next((folder / "other").rglob("*.png")), before[16])
    os.utime(before[17])
    result = command("index", "build", index, *DIGITS, folder)
    assert result.exit_code == 0, result.output
    assert (
        f"{index}: 20 added, 43 there already, 2 changed and encoded again, 5 renamed, 10 gone and removed, 70 images"
    ) in result.output
    # Neither renamed ones, nor one with the content of another, nor one that was touched alone are computed again.
    assert sorted(encoded) == sorted([*(f"{row:04d}.png" for row in range(60, 80)), before[16].name])
    assert contents(index) == expected(folder)
    encoded.clear()
    again = command("index", "build", index, *DIGITS, folder)
    assert "0 added, 70 there already, 70 images" in again.output
    assert not encoded


def test_a_folder_that_has_got_another_name_is_not_computed_again(command, folder, index, encoded):
    folder.rename(folder.with_name("pictures"))
    result = command("index", "build", index, *DIGITS, folder.with_name("pictures"))
    assert "60 renamed, 60 images" in result.output
    assert not encoded
    assert contents(index) == expected(folder.with_name("pictures"))


def test_files_that_changed_places_keep_no_code_of_the_other(command, folder, index):
    first, second, third, fourth = pictures(folder)[:4]
    first.rename(folder / "moment.png")
    second.rename(first)
    (folder / "moment.png").rename(second)
    command("index", "build", index, *DIGITS, folder)
    assert contents(index) == expected(folder)
    third.rename(fourth)
    moved = command("index", "build", index, *DIGITS, folder).output
    assert ": 0 added, 58 there already, 1 changed and encoded again, 1 renamed, 59 images" in moved
    assert contents(index) == expected(folder)


def test_more_than_half_are_not_removed_unless_asked_for(command, folder, index):
    before = contents(index)
    for path in pictures(folder)[:31]:
        path.unlink()
    refused = command("index", "build", index, *DIGITS, folder)
    assert refused.exit_code == 1
    assert "31 of 60 files are gone" in refused.output and "--keep-missing" in refused.output
    assert contents(index) == before
    assert "60 images" in command("index", "build", index, *DIGITS, folder, "--keep-missing").output
    assert contents(index) == before
    result = command("index", "build", index, *DIGITS, folder, "--remove-missing")
    assert "31 gone and removed, 29 images" in result.output
    assert contents(index) == expected(folder)


def test_of_a_folder_that_was_emptied_all_are_removed_when_that_is_asked_for(command, folder, index, tmp_path):
    shutil.rmtree(folder)
    folder.mkdir()
    assert "60 of 60 files are gone" in command("index", "build", index, *DIGITS, folder).output
    for removed in ("60 gone and removed, ", ""):
        result = command("index", "build", index, *DIGITS, folder, "--remove-missing")
        assert (result.exit_code, f": 0 added, {removed}0 images" in result.output) == (0, True), result.output
    assert "there is no image in" in one_line(command("index", "build", tmp_path / "new", *DIGITS, folder))


def test_a_watched_file_that_cannot_be_read_is_named_once_and_read_again_when_it_has_changed(folder, index, encoded):
    broken = folder / "broken.png"
    broken.write_bytes(b"no image")
    with ImageIndex.open(index) as images:
        watch = Watch(images, [str(folder)])
        assert [[image.name for image in watch.look().skipped] for _ in range(3)] == [[str(broken)], [], []]
        assert encoded == ["broken.png"]
        shutil.copy(pictures(folder)[0], broken)
        assert watch.look().added == 1
        broken.write_bytes(b"no image again")
        assert [len(watch.look().skipped) for _ in range(2)] == [1, 0] and encoded == 2 * ["broken.png"]


def test_a_watched_folder_most_of_which_is_gone_is_said_once_and_what_is_new_is_added(folder, index):
    first, *others = pictures(folder)
    Image.open(first).rotate(90).save(folder / "new.png")
    for path in others:
        path.unlink()
    with ImageIndex.open(index) as images:
        watch = Watch(images, [str(folder)])
        reports = watch.look(), watch.look()
    assert [(report.added, report.removed) for report in reports] == [(1, 0), (0, 0)]
    assert [[image.reason for image in report.skipped] for report in reports] == [[MANY_GONE], []]


def test_what_is_gone_behind_a_link_is_removed_and_what_cannot_be_looked_at_is_not(command, folder, monkeypatch):
    elsewhere, index = folder.parent / "elsewhere", folder.parent / "x.index"
    (folder / "3").rename(elsewhere)
    (folder / "3").symlink_to(elsewhere)
    command("index", "build", index, *DIGITS, folder)
    gone, hidden = pictures(elsewhere)[:2]
    gone.unlink()
    hidden.rename(folder.parent / "hidden.png")

    def lstat(path, of=os.lstat):
        if os.fspath(path) == str(hidden):
            raise PermissionError
        return of(path)

    monkeypatch.setattr(os, "lstat", lstat)
    assert ", 1 gone and removed, 59 images" in command("index", "build", index, *DIGITS, folder).output


def test_a_picture_in_whose_place_a_link_to_another_is_put_is_gone(command, folder):
    index = folder.parent / "x.index"
    command("index", "build", index, *DIGITS, folder)
    kept, linked = pictures(folder / "3")[:2]
    linked.unlink()
    linked.symlink_to(kept)
    assert ", 1 gone and removed, 59 images" in command("index", "build", index, *DIGITS, folder).output


def test_what_is_a_folder_or_no_picture_any_more_is_gone(command, folder, index):
    folder_now, text_now = pictures(folder / "3")[:2]
    folder_now.unlink()
    folder_now.mkdir()
    text_now.write_text("no picture")
    said = command("index", "build", index, *DIGITS, folder).output
    assert ", 2 gone and removed, 58 images" in said and f"left out: {text_now}" in " ".join(said.split())
    assert "0 added, 58 there already, 58 images" in command("index", "build", index, *DIGITS, folder).output


def test_what_a_link_led_to_is_gone_with_the_link(command, folder, tmp_path):
    index, elsewhere = tmp_path / "x.index", tmp_path / "nas"
    (folder / "3").rename(elsewhere)
    linked = len(pictures(elsewhere))
    (folder / "3").symlink_to(elsewhere)
    (folder / "one.png").symlink_to(pictures(elsewhere)[0])
    assert "60 images" in command("index", "build", index, *DIGITS, folder).output
    (folder / "one.png").unlink()
    assert "60 there already, 60 images" in command("index", "build", index, *DIGITS, folder).output
    (folder / "3").unlink()
    said = command("index", "build", index, *DIGITS, folder).output
    assert f", {linked} gone and removed, {60 - linked} images" in said
    # Under another name they are what they were.
    (folder / "4").rename(tmp_path / "four")
    (folder / "4").symlink_to(tmp_path / "four")
    assert f"{60 - linked} images" in command("index", "build", index, *DIGITS, folder).output


def test_half_are_removed(command, folder, index):
    for path in pictures(folder)[:30]:
        path.unlink()
    assert "30 gone and removed, 30 images" in command("index", "build", index, *DIGITS, folder).output


def test_items_of_other_folders_stay_where_these_are_not_there(command, folder, index, tmp_path):
    write_digits(tmp_path / "other disk", range(100, 104))
    command("index", "build", index, *DIGITS, tmp_path / "other disk")
    assert len(contents(index)) == 64
    shutil.rmtree(tmp_path / "other disk")
    result = command("index", "build", index, *DIGITS, folder)
    assert "60 there already, 64 images" in result.output
    assert "its file is not there any more" in result.output


def test_a_file_of_the_same_size_and_time_is_read_only_to_verify(command, folder, index):
    paths = pictures(folder)
    one, other = next(
        (one, other)
        for one in paths
        for other in paths
        if one.stat().st_size == other.stat().st_size and one.parent != other.parent
    )
    times = (one.stat().st_atime_ns, one.stat().st_mtime_ns)
    one.write_bytes(other.read_bytes())
    os.utime(one, ns=times)
    assert "60 there already" in command("index", "build", index, *DIGITS, folder).output
    assert contents(index) != expected(folder)
    result = command("index", "build", index, *DIGITS, folder, "--verify")
    assert "59 there already, 1 changed" in result.output
    assert contents(index) == expected(folder)


def test_a_killed_update_goes_on(command, folder, index, monkeypatch):
    write_digits(folder, range(60, 90))
    for path in pictures(folder)[:5]:
        path.unlink()
    monkeypatch.setattr(ImageHasher, "batch_size", 16)
    store = ImageIndex.store
    left = [1]

    def killed(self, encoded, images):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        store(self, encoded, images)

    with monkeypatch.context() as patched:
        patched.setattr(ImageIndex, "store", killed)
        assert command("index", "build", index, *DIGITS, folder).exit_code != 0
    assert len(contents(index)) == 60 + 16
    result = command("index", "build", index, *DIGITS, folder)
    assert result.exit_code == 0, result.output
    assert contents(index) == expected(folder)


def test_answers_do_not_show_how_files_are_known(command, index):
    with ImageIndex.open(index, read_only=True) as images:
        name = next(iter(images))
    [first, *_] = json.loads(command("search", index, "--id", name, "--json").output)
    assert first.keys() == {"id", "distance", "label", "near", "path"}


def test_codes_of_an_older_index_are_kept(command, folder, index, encoded):
    with ImageIndex.open(index) as images:
        names = list(images)
        items = images.index.items(names)
        kept = {column: [item.metadata[column] for item in items] for column in ("path", "label", "stamp")}
        images.index.add(names, np.stack([item.code for item in items]), kept, replace=True)
    write_digits(folder, range(60, 61))
    assert "1 added, 60 there already" in command("index", "build", index, *DIGITS, folder).output
    assert encoded == ["0060.png"]


def test_several_copies_of_a_file_of_the_index_are_added(command, folder, index):
    first = pictures(folder)[0]
    for number in range(3):
        shutil.copy(first, folder / f"copy {number}.png")
    result = command("index", "build", index, *DIGITS, folder)
    assert result.exit_code == 0, result.output
    assert contents(index) == expected(folder)


def test_a_label_that_a_csv_changes_is_taken_over_without_computing_anything(command, folder, index, encoded, tmp_path):
    def labels():
        with ImageIndex.open(index, read_only=True) as images:
            return {Path(item.metadata["path"]).name: item.metadata.get("label") for item in images.index.items(named)}

    named = [str(folder / name) for name in ("0/0000.png", "0/0010.png", "1/0001.png")]
    before = contents(index)
    for given, expected in (("cafe\u0301", "café"), ("", None)):
        rows = [f"{named[0]},{given}\n", f"{named[1]},0\n"]
        (tmp_path / "labels.csv").write_text("path,label\n" + "".join(rows))
        for paths in ([tmp_path / "labels.csv"], [folder]):
            built = command("index", "build", index, *DIGITS, *paths)
            assert built.exit_code == 0 and "changed" not in built.output
            assert labels() == {"0000.png": expected, "0010.png": "0", "0001.png": "1"}
    assert contents(index) == before
    assert encoded == []
