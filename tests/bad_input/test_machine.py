"""A full disk, too little memory and signals are explained in one line."""

import errno

import pytest

from deephash_pipeline.cli import cli, main
from deephash_pipeline.cli.refusals import explained
from deephash_pipeline.common.errors import chain_of

MACHINE = [
    (
        OSError(errno.ENOSPC, "No space left on device", "a.npy"),
        "a.npy cannot be written (No space left on device): make room",
    ),
    (OSError(errno.ENOSPC, "No space left on device"), "a file cannot be written (No space left on device): make room"),
    (OSError(errno.EDQUOT, "Disk quota exceeded", "a.npy"), "make room within the quota"),
    (OSError(errno.EROFS, "Read-only file system", "a.npy"), "its disk is mounted for reading"),
    (OSError(errno.EIO, "Input/output error"), "a file cannot be read or written (Input/output error)"),
    (PermissionError(errno.EACCES, "Permission denied", "a.npy"), "Permission denied"),
    (OSError(errno.EMFILE, "Too many open files", "a.npy"), "Too many open files"),
    (MemoryError("Unable to allocate 1.8 PiB"), "out of memory (Unable to allocate 1.8 PiB)"),
]


@pytest.fixture(autouse=True)
def without_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("error", "named"), MACHINE)
def test_what_the_machine_refuses_is_explained(error, named):
    wrapper = RuntimeError("a node failed")
    wrapper.__cause__ = error
    found = explained(chain_of(wrapper))
    assert named in str(found)


def test_a_bug_is_not_explained_away():
    for bug in (TypeError("no"), KeyError("x"), OSError("no number"), AssertionError("no")):
        assert explained(chain_of(bug)) is None


def test_ctrl_c_during_imports_is_one_line(monkeypatch, capsys):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "import_module", interrupted)
    with pytest.raises(SystemExit) as stopped:
        cli(["methods"])
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "Error: interrupted\n"
