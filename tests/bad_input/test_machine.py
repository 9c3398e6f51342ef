"""A full disk, too little memory, a damaged cache and signals are explained in one line."""

import errno
import sys
from pathlib import Path

import pytest
from kedro.framework.cli.utils import LazyGroup
from numba.core.caching import IndexDataCacheFile

from deephash_pipeline.cli import cli
from deephash_pipeline.cli.guarded import causes, one_line_errors
from deephash_pipeline.cli.refusals import explained

MACHINE = [
    (OSError(errno.ENOSPC, "No space left on device", "a.npy"), "a.npy: the disk is full"),
    (OSError(errno.EDQUOT, "Disk quota exceeded", "a.npy"), "a.npy: the disk is full"),
    (OSError(errno.EROFS, "Read-only file system", "a.npy"), "a.npy cannot be read or written"),
    (PermissionError(errno.EACCES, "Permission denied", "a.npy"), "Permission denied"),
    (OSError(errno.EIO, "Input/output error", "a.npy"), "Input/output error"),
    (OSError(errno.EMFILE, "Too many open files", "a.npy"), "Too many open files"),
    (OSError(errno.ENAMETOOLONG, "File name too long", "a" * 300), "File name too long"),
    (MemoryError("Unable to allocate 1.8 PiB"), "out of memory (Unable to allocate 1.8 PiB)"),
]


@pytest.fixture(autouse=True)
def without_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("error", "named"), MACHINE)
def test_what_the_machine_refuses_is_explained(error, named):
    wrapper = RuntimeError("a node failed")
    wrapper.__cause__ = error
    found = explained(list(causes(wrapper)), None)
    assert named in str(found)


def test_a_bug_is_not_explained_away():
    for bug in (TypeError("no"), KeyError("x"), OSError("no number"), AssertionError("no"), EOFError("elsewhere")):
        assert explained(list(causes(bug)), None) is None


@pytest.mark.parametrize("content", [b"", b"\x80", b"\x80\x05\x95", b"no pickle", b"\x80\x04\x8c\xff0.61"])
def test_a_damaged_cache_of_numba_is_named(tmp_path, content):
    cache = IndexDataCacheFile(str(tmp_path), "kernels.count-12.py311", (0.0, 1))
    Path(cache._index_path).write_bytes(content)
    with pytest.raises(Exception) as caught:
        cache.load("signature")
    found = explained(list(causes(caught.value)), None)
    assert f"{cache._index_path}, a cache of compiled code, is damaged: remove it" in str(found)


@pytest.mark.usefixtures("here")
def test_a_run_that_is_stopped_outside_a_training_says_so(capsys):
    with pytest.raises(SystemExit) as stopped:
        one_line_errors(lambda: sys.exit(143))()
    assert stopped.value.code == 143
    assert capsys.readouterr().err.splitlines() == [
        "Error: stopped by SIGTERM: the same command goes on with what is not made yet"
    ]


def test_ctrl_c_during_imports_is_one_line(monkeypatch, capsys):
    def interrupted(group, name):
        raise KeyboardInterrupt

    monkeypatch.setattr(LazyGroup, "_lazy_load", interrupted)
    with pytest.raises(SystemExit) as stopped:
        cli(["methods"])
    assert stopped.value.code == 130
    assert capsys.readouterr().err == "Error: interrupted\n"
