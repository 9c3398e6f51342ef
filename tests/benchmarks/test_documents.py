from pathlib import Path

import pytest

from benchmarks.documents import markdown_table, read_results, replaced_between_markers, write_results
from deephash_pipeline.errors import InputError

DOCUMENT = "# Title\n\n<!-- a: begin -->\nold\n<!-- a: end -->\n\n<!-- b: begin -->\nkept\n<!-- b: end -->\n"


def test_only_what_stands_between_the_markers_changes() -> None:
    replaced = replaced_between_markers(DOCUMENT, "a", "new\n")
    assert replaced == DOCUMENT.replace("begin -->\nold\n", "begin -->\n\nnew\n\n")
    assert replaced_between_markers(replaced, "a", "new") == replaced


@pytest.mark.parametrize(
    "document",
    [
        "nothing",
        "<!-- a: begin -->",
        "<!-- a: end --> <!-- a: begin -->",
        DOCUMENT + "<!-- a: end -->",
        "<!-- a: begin -->" + DOCUMENT,
    ],
)
def test_a_document_without_its_two_markers_is_refused(document: str) -> None:
    with pytest.raises(InputError, match="must hold <!-- a: begin -->"):
        replaced_between_markers(document, "a", "new")


def test_a_table_has_a_line_for_each_row() -> None:
    assert markdown_table(("x", "y"), [("1", "2"), ("3", "4")]).splitlines() == [
        "| x | y |",
        "| --- | --- |",
        "| 1 | 2 |",
        "| 3 | 4 |",
    ]


def test_results_come_back_as_they_were_and_leave_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "results" / "some.json"
    write_results(path, {"cells": [{"seconds": 0.125}]})
    assert read_results(path) == {"cells": [{"seconds": 0.125}]}
    assert [file.name for file in path.parent.iterdir()] == ["some.json"]


def test_results_that_are_not_there_are_an_error_that_tells_what_makes_them(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="make bench"):
        read_results(tmp_path / "none.json")
