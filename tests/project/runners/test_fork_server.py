"""With what environment the fork server starts."""

import os

import torch

from deephash_pipeline.common.devices import threads
from deephash_pipeline.common.fork_server import ONE_THREAD_EACH, environment


def test_the_environment_is_set_for_what_is_started_and_then_as_before(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    before = dict(os.environ)
    with environment():
        assert {name: os.environ[name] for name in ONE_THREAD_EACH} == dict.fromkeys(ONE_THREAD_EACH, "1")
    assert dict(os.environ) == before


def test_where_all_libraries_have_one_thread_from_the_environment_they_are_not_asked(monkeypatch):
    limited = []
    monkeypatch.setattr("threadpoolctl.threadpool_limits.__init__", lambda self, number: limited.append(number))
    monkeypatch.setattr("threadpoolctl.threadpool_limits.__exit__", lambda self, *error: None)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    for name, value in ONE_THREAD_EACH.items():
        monkeypatch.setenv(name, value)
    with threads(1):
        assert limited == []
    monkeypatch.delenv("MKL_NUM_THREADS")
    with threads(1):
        assert limited == [1]
