"""`deephash-pipeline pairs`."""

import csv
import io

import numpy as np
import pytest

from deephash_pipeline.hamming import HammingIndex
from tests.cli.test_search import one_line


@pytest.fixture
def stored(tmp_path):
    with HammingIndex.create(tmp_path / "one", 8) as index:
        index.add(["a", "b", "c", "d,e"], np.array([[0], [255], [1], [3]], dtype=np.uint8))
    with HammingIndex.create(tmp_path / "other", 8) as index:
        index.add([5], np.array([[254]], dtype=np.uint8))
    return tmp_path


def rows(text):
    return list(csv.reader(io.StringIO(text)))


def test_pairs_and_groups_are_printed_or_written(command, stored):
    printed = command("pairs", stored / "one", "--radius", 1)
    assert printed.exit_code == 0, printed.output
    assert rows(printed.stdout) == [["first", "second", "distance"], ["a", "c", "1"], ["c", "d,e", "1"]]
    assert b"\r" not in printed.stdout_bytes
    written = command("pairs", stored / "one", "--radius", 1, "--out", stored / "pairs.csv")
    assert written.stdout == f"{stored / 'pairs.csv'}: 2 rows\n"
    assert rows((stored / "pairs.csv").read_text()) == rows(printed.stdout)
    there = ("pairs", stored / "one", "--radius", 0, "--out", stored / "pairs.csv")
    assert "is there: name another file, or add --overwrite" in one_line(command(*there))
    assert command(*there, "--overwrite").stdout == f"{stored / 'pairs.csv'}: 0 rows\n"
    groups = command("pairs", stored / "one", "--radius", 1, "--groups")
    assert rows(groups.stdout) == [["group", "id"], ["1", "a"], ["1", "c"], ["1", "d,e"]]
    against = command("pairs", stored / "one", "--radius", 1, "--against", stored / "other")
    assert rows(against.stdout)[1:] == [["b", "5", "1"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("missing",), "missing has no index"),
        (("one", "--against", "nowhere"), "nowhere has no index"),
        (("one", "--against", "other", "--groups"), "leave --against out"),
    ],
)
def test_what_cannot_be_paired_is_refused_in_a_line(command, stored, options, said):
    paths = [option if option.startswith("--") else stored / option for option in options]
    result = command("pairs", *paths, "--radius", 1, "--out", stored / "out.csv")
    assert said in one_line(result)
    assert not (stored / "out.csv").exists()
