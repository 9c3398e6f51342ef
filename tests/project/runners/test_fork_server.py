"""When the fork server starts before all else, and with what environment."""

import os
import subprocess
import sys

import pytest
import torch

from deephash_pipeline.common import fork_server
from deephash_pipeline.common.devices import threads
from deephash_pipeline.common.fork_server import ENVIRONMENT, environment, start_if_wanted


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("run", True),
        ("run --pipelines=full", True),
        ("run --pipelines=full --env=mnist", True),
        ("run --pipelines=field", True),
        ("run --pipelines=evaluation", False),
        ("run --pipelines=full --workers=1", False),
        ("run --pipelines=full --runner=SequentialRunner", False),
        ("run --pipelines=full --help", False),
        ("registry list", False),
        ("", False),
    ],
)
def test_it_starts_for_runs_that_use_all_cores(command, wanted, monkeypatch):
    started = []
    monkeypatch.setattr(fork_server, "start", lambda: started.append(True))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.delenv("DEEPHASH_WORKERS", raising=False)
    start_if_wanted(["kedro", *command.split()])
    assert started == [True] * wanted
    monkeypatch.setenv("DEEPHASH_WORKERS", "1")
    start_if_wanted(["kedro", *command.split()])
    assert started == [True] * wanted


def test_the_environment_is_set_for_what_is_started_and_then_as_before(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    before = dict(os.environ)
    with environment():
        assert {name: os.environ[name] for name in ENVIRONMENT} == dict.fromkeys(ENVIRONMENT, "1")
    assert dict(os.environ) == before


def test_its_module_imports_nothing_that_takes_long():
    module = "deephash_pipeline.common.fork_server"
    program = f"import sys; import {module}; print({{'torch', 'kedro', 'numpy'}} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "set()\n"


def test_where_all_libraries_have_one_thread_from_the_environment_they_are_not_asked(monkeypatch):
    limited = []
    monkeypatch.setattr("threadpoolctl.threadpool_limits.__init__", lambda self, number: limited.append(number))
    monkeypatch.setattr("threadpoolctl.threadpool_limits.__exit__", lambda self, *error: None)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with threads(1):
        assert limited == []
    monkeypatch.delenv("MKL_NUM_THREADS")
    with threads(1):
        assert limited == [1]
