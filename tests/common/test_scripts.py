"""A script whose workers would run it again is told so in one line, before any of them starts."""

import subprocess
import sys

import pytest

LINES = """\
from deephash_pipeline.common.scripts import refuse_unguarded_script


def work():
    refuse_unguarded_script()
"""
GUARDED = ['if __name__ == "__main__":\n    work()\n', 'if __name__ != "__main__":\n    raise SystemExit\nwork()\n']
UNGUARDED = ["work()\n", "for _ in range(2):\n    work()\n", 'work()\nif __name__ == "__main__":\n    print("late")\n']


def ended(*command, cwd):
    return subprocess.run([sys.executable, *command], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("lines", UNGUARDED)
def test_lines_that_each_worker_would_run_are_refused(tmp_path, lines):
    (tmp_path / "script.py").write_text(LINES + lines)
    for command in (["script.py"], ["-m", "script"]):
        error = ended(*command, cwd=tmp_path).stderr.splitlines()[-1]
        assert "script.py, line " in error
        assert 'put it below `if __name__ == "__main__":`' in error


@pytest.mark.parametrize("lines", GUARDED)
def test_guarded_lines_and_those_of_no_file_are_not(tmp_path, lines):
    (tmp_path / "script.py").write_text(LINES + lines)
    assert ended("script.py", cwd=tmp_path).returncode == 0
    assert ended("-c", f"{LINES}work()", cwd=tmp_path).returncode == 0
    (tmp_path / "__init__.py").touch()
    (tmp_path / "__main__.py").write_text(f"{LINES}work()")
    assert ended("-m", tmp_path.name, cwd=tmp_path.parent).returncode == 0


def test_encoding_in_a_script_ends_with_that_line_and_writes_nothing(tmp_path):
    (tmp_path / "script.py").write_text(
        "from deephash_pipeline.encoding.encode import EncodingWorkers, _processes\n"
        "with _processes(EncodingWorkers(count=2)) as pool:\n    print(pool)\n"
    )
    done = ended("script.py", cwd=tmp_path)
    assert "script.py, line 2, starts processes" in done.stderr.splitlines()[-1]
    assert done.stdout == ""
