"""Machine code is that of the source as it is now, wherever it can be kept."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deephash_pipeline.common import machine_code
from tests.conftest import ROOT

KERNEL = """\
from toy.common.machine_code import compiled
from toy.sizes import (
    SIZE,
)
from toy import far

@compiled()
def measured():
    return SIZE + far.number()
"""
SIZES = "from toy.common import deep\n\nSIZE = 10 * deep.NUMBER\n"
FAR = "import numba\n\n@numba.njit(inline='always')\ndef number():\n    return 1\n"
SHOWN = "from toy.kernel import measured; print(measured(), len(measured.stats.cache_hits))"


@pytest.fixture
def toy(tmp_path):
    """A package whose kernel inlines what three other modules say."""
    package = tmp_path / "toy"
    (package / "common").mkdir(parents=True)
    for name in ("__init__.py", "common/__init__.py"):
        (package / name).touch()
    for name, text in {"kernel": KERNEL, "sizes": SIZES, "far": FAR, "common/deep": "NUMBER = 1\n"}.items():
        (package / f"{name}.py").write_text(text)
    shutil.copy(machine_code.__file__, package / "common")
    return package


def measured(toy, **environment):
    """Call the kernel in a process of its own; return the result, and whether its machine code was found."""
    given = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    # Python's bytecode is known by whole seconds and bytes, within which this file changes more than once.
    given["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", SHOWN],
        cwd=toy.parent,
        env=given | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    return tuple(map(int, done.stdout.split()))


def kept(toy):
    return list((toy / "__pycache__" / "kernels").glob("kernel-*"))


def test_machine_code_is_found_again_until_something_that_it_inlines_is_another(toy):
    assert [measured(toy), measured(toy)] == [(11, 0), (11, 1)]
    (toy / "far.py").write_text(FAR.replace("return 1", "return 2"))
    assert measured(toy) == (12, 0)
    for number in range(2, 5):
        (toy / "common" / "deep.py").write_text(f"NUMBER = {number}\n")
        assert measured(toy) == (10 * number + 2, 0)
    assert len(kept(toy)) == machine_code.KEPT_STATES
    assert measured(toy) == (42, 1)


def test_damaged_machine_code_is_compiled_again(toy):
    measured(toy)
    for file in kept(toy)[0].iterdir():
        file.write_bytes(file.read_bytes()[:40])
    assert [measured(toy), measured(toy)] == [(11, 0), (11, 1)]


def test_where_no_folder_can_be_written_to_it_is_compiled_each_time(toy, tmp_path):
    (toy / "__pycache__").write_text("a file, where a folder should be")
    nowhere = {
        "HOME": "/dev/null",
        "TMPDIR": str(tmp_path / "tmp"),
        "XDG_CACHE_HOME": "",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    (tmp_path / "tmp").mkdir()
    assert [measured(toy, **nowhere), measured(toy, **nowhere)] == [(11, 0), (11, 1)]
    (folder,) = (tmp_path / "tmp").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert measured(toy, **nowhere) == (11, 0)


def test_code_that_others_could_have_written_is_not_run(tmp_path, monkeypatch):
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert not machine_code._is_usable(link, is_private=True)
    assert machine_code._is_usable(tmp_path / "own", is_private=True)
    monkeypatch.setattr(os, "geteuid", lambda: 12345678)
    assert not machine_code._is_usable(tmp_path / "own", is_private=True)
    assert machine_code._is_usable(tmp_path / "own", is_private=False)


def test_all_kernels_of_the_package_keep_their_machine_code_there():
    for path in (ROOT / "src").rglob("*.py"):
        if path != Path(machine_code.__file__):
            text = path.read_text()
            assert not re.search(r"cache=True\b.*nogil|nogil.*cache=True", text), path
            assert (
                not re.search(r"\b(jit|njit|vectorize|guvectorize|cfunc|stencil)\((?!inline=)", text)
                or "numba" not in text
            ), path
