"""What may be written, and what is said where it cannot be."""

import errno
import os
import sqlite3

import pytest

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.outputs import check_outputs, require_replaceable, starts_with
from deephash_pipeline.common.stores import replacing, write_whole
from deephash_pipeline.common.writing import cannot_write

OURS = starts_with("group,")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").mkdir()
    for name, text in (("input", "x"), ("ours.csv", "group,action\n"), ("notes.csv", "my group,action\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "link").symlink_to("input")
    os.link("input", "hard")
    (tmp_path / "folder link").symlink_to("p")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.mark.parametrize("name", ["input", "p/../input", "link", "hard", "./input", "folder link/../input"])
def test_an_input_is_never_an_output_by_any_spelling(folder, name):
    with pytest.raises(InputError, match="is read here"):
        check_outputs([folder / name], ["input"], [OURS])


@pytest.mark.parametrize("names", [("a", "p/../a"), ("p/a", "folder link/a"), ("ours.csv", "./ours.csv"), ("-", "-")])
def test_two_outputs_are_never_one_file(folder, names):
    outputs = [folder / name if name != "-" else type(folder)(name) for name in names]
    with pytest.raises(InputError, match="are one file"):
        check_outputs(outputs, [], [OURS, OURS])


@pytest.mark.parametrize("name", ["/dev/null", "/dev/full", "pipe", "p", "folder link"])
def test_what_is_no_regular_file_is_never_replaced(folder, name):
    for write in (
        lambda path: check_outputs([path], [], [OURS]),
        lambda path: require_replaceable(path, OURS),
        lambda path: write_whole(path, b"x"),
        lambda path: replacing(path).__enter__(),
    ):
        with pytest.raises(InputError, match="is no regular file"):
            write(folder / name)


def test_only_files_that_the_program_has_made_are_replaced_and_only_if_asked(folder):
    check_outputs([folder / "ours.csv", folder / "new.csv"], ["input"], [OURS, OURS])
    with pytest.raises(InputError, match="add --overwrite"):
        check_outputs([folder / "ours.csv"])
    with pytest.raises(InputError, match="was not made by what would replace it"):
        check_outputs([folder / "notes.csv"], [], [OURS])


def test_nothing_is_put_into_an_index(folder):
    (folder / "x.index" / "segments").mkdir(parents=True)
    (folder / "x.index" / "index.sqlite").touch()
    for name in ("index.sqlite", "new.csv", "segments/new.csv"):
        with pytest.raises(InputError, match="would be in the index"):
            check_outputs([folder / "x.index" / name], [], [OURS])
    check_outputs([folder / "x.index" / "hasher.onnx"], [], [OURS], of_index="hasher.onnx")


FAULTS = [
    (errno.ENOSPC, "make room on its disk"),
    (errno.EDQUOT, "within the quota"),
    (errno.EROFS, "mounted for reading"),
    (errno.EIO, "look after its disk"),
    (errno.EACCES, "give the right to write"),
    (errno.EISDIR, "mend that"),
]


@pytest.mark.parametrize(("number", "remedy"), FAULTS)
def test_each_fault_of_a_disk_has_its_own_remedy(number, remedy):
    # As of `open`, of `write`, which names no file, and of `shutil.copytree`, which gives a list.
    for error in (
        OSError(number, os.strerror(number), "a"),
        OSError(number, os.strerror(number)),
        OSError([("a", "b", f"[Errno {number}] {os.strerror(number)}: 'b'")]),
    ):
        said = str(cannot_write("a/b", error))
        assert said.startswith(f"a/b cannot be written ({os.strerror(number)})") and remedy in said


@pytest.mark.parametrize(
    ("code", "remedy"),
    [(sqlite3.SQLITE_FULL, "make room"), (sqlite3.SQLITE_BUSY, "wait until"), (sqlite3.SQLITE_READONLY, "the right")],
)
def test_each_fault_of_sqlite_has_its_own_remedy(code, remedy):
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = code
    assert remedy in str(cannot_write("index", error))
