"""Private names of other packages are few, and each has its reason beside it."""

from pathlib import Path

import deephash_pipeline
from tests.private_names import ROOT, private_lines

MOST = 10


def test_private_names_of_other_packages_are_few():
    lines = private_lines()
    assert len(lines) <= MOST, "\n".join(lines)


def test_each_has_its_reason_in_the_line_above():
    for found in private_lines():
        module, _, number = found.partition(" ")[0].rpartition(":")
        lines = (ROOT / module).read_text(encoding="utf-8").splitlines()
        assert lines[int(number) - 2].lstrip().startswith("# Private: "), found


def test_the_tool_sees_each_kind(tmp_path, monkeypatch):
    from tests import private_names  # noqa: PLC0415 - as a module, whose names are replaced

    code = """
import torch._dynamo
from numba.core import _helper
from kedro.io import AbstractDataset
import numpy

class Stored(AbstractDataset):
    def _describe(self): return {}
    def _init_args(self): return self._unknown
    def _own(self): return self._mine
    def load(self): super()._init_args()

def patch(context, Stored):
    context._pipelines = []
    numpy.random.seed = None
    context.__class__ = Stored
    return context._asdict()
"""
    (tmp_path / "made.py").write_text(code)
    monkeypatch.setattr(private_names, "ROOT", tmp_path)
    monkeypatch.setattr(private_names, "_names_of_bases", lambda *_: frozenset({"_init_args"}))
    private_names.trees.cache_clear()
    private_names.own_names.cache_clear()
    try:
        assert [line.partition(":")[2].split() for line in private_lines()] == [
            ["2", "_dynamo"],
            ["3", "_helper"],
            ["9", "_unknown"],
            ["10", "_mine"],
            ["11", "_init_args"],
            ["14", "_pipelines"],
            ["15", "seed"],
            ["16", "__class__"],
        ]
    finally:
        private_names.trees.cache_clear()
        private_names.own_names.cache_clear()


def test_the_tool_reads_the_whole_package():
    assert Path(deephash_pipeline.__file__).parent == ROOT
