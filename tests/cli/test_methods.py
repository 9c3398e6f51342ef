"""The table of methods has all of the grid, and says what the classes say."""

import re
from dataclasses import asdict, fields

import pytest
from click.testing import CliRunner

from deephash_pipeline.cli.main import cli
from deephash_pipeline.cli.methods import method_of
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.losses import LOSSES
from deephash_pipeline.pipelines import method_facts
from deephash_pipeline.pipelines.grid import METHODS, WITHOUT_LABELS


def test_the_command_lists_every_method_once_and_in_order():
    lines = CliRunner().invoke(cli, ["methods"], catch_exceptions=False).output.splitlines()
    assert [line.split()[0] for line in lines] == ["key", *METHODS]
    assert len({line.index(METHODS[key]) for key, line in zip(METHODS, lines[1:], strict=True)}) == 1


def test_what_hash_functions_can_do_without_is_what_the_grid_runs_without_labels():
    on_z = [method_of(key) for key in METHODS if method_of(key).kind == "hash function on z"]
    assert [method.key for method in on_z if method.needs == "no labels"] == list(WITHOUT_LABELS)


def test_every_method_names_its_paper():
    papers = [method_of(key).paper for key in METHODS if key != "one_of_c"]
    assert [paper for paper in papers if not re.search(r" (19|20)\d\d(, ((doi|arXiv):|https?://)\S+)?$", paper)] == []


@pytest.mark.parametrize(
    ("table", "read"), [(HASH_FUNCTIONS, method_facts.HASH_FUNCTION_FACTS), (LOSSES, method_facts.LOSS_FACTS)]
)
def test_what_is_read_from_the_source_is_what_the_classes_say(table, read):
    assert list(read) == list(table)
    for key, facts in read.items():
        said = {field.name: getattr(table[key], field.name, field.default) for field in fields(facts)}
        assert asdict(facts) == said


def test_a_line_of_a_registry_that_names_no_class_is_named(monkeypatch):
    entry = {"lhs": ("deephash_pipeline.hashing.lsh", "LHS")}
    monkeypatch.setattr(method_facts, "table_entries", lambda *_: entry)
    with pytest.raises(InputError, match=r"`lhs` is deephash_pipeline\.hashing\.lsh:LHS, .*: mend its line"):
        method_facts.facts_of("deephash_pipeline.hashing.registry", "HASH_FUNCTIONS")
