"""Measurements that need a process of their own: its memory, and its first calls. Imports nothing that takes memory."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from benchmarks.documents import PROJECT

MEBIBYTE, GIBIBYTE = 2**20, 2**30
PROCESSES = ("first process, nothing compiled", "second process")
TIMED_STATEMENTS = """
import json, sys, time
seconds, last = {}, time.perf_counter()
for name, statement in json.loads(sys.argv[1]).items():
    exec(statement)
    now = time.perf_counter()
    seconds[name], last = now - last, now
print(json.dumps(seconds))
"""


def process_bytes(entry: Literal["VmRSS", "VmHWM", "RssAnon"], process: int | Literal["self"] = "self") -> int:
    """Bytes of a process resident now (VmRSS; RssAnon without pages of files), or at most so far (VmHWM); on Linux."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return 1024 * int(status.split(f"{entry}:")[1].split()[0])


def in_new_process(function: str, *arguments: object, **environment: str) -> Any:
    """Call a function of numbers and words, ``module:name``, in a process that has done nothing else.

    Further variables of its environment may be given.
    """
    module, _, name = function.partition(":")
    program = f"import json, sys; from {module} import {name}; print(json.dumps({name}(*json.loads(sys.argv[1]))))"
    return _printed(program, json.dumps(arguments), **environment)


def _printed(program: str, argument: str, **environment: str) -> Any:
    command, environment = [sys.executable, "-c", program, argument], {**os.environ, **environment}
    finished = subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True, text=True)
    return json.loads(finished.stdout)


def first_calls(statements: Mapping[str, str]) -> list[dict[str, float]]:
    """Seconds of statements, one after the other, in a process with nothing compiled, and in the next process."""
    with tempfile.TemporaryDirectory() as cache:
        return [_printed(TIMED_STATEMENTS, json.dumps(statements), NUMBA_CACHE_DIR=cache) for _ in PROCESSES]


def first_call_rows(timed: list[dict[str, float]], digits: int) -> list[dict[str, str]]:
    """Rows of a table of what `first_calls` returns."""
    of_processes = zip(PROCESSES, timed, strict=True)
    return [{"": name} | {what: f"{s:.{digits}f}" for what, s in seconds.items()} for name, seconds in of_processes]
