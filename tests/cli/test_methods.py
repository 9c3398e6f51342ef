"""The table of methods has all of the grid, and says what the classes say."""

from click.testing import CliRunner

from deephash_pipeline.cli.main import cli
from deephash_pipeline.cli.methods import method_of
from deephash_pipeline.pipelines.grid import METHODS, WITHOUT_LABELS


def test_the_command_lists_every_method_once_and_in_order():
    lines = CliRunner().invoke(cli, ["methods"], catch_exceptions=False).output.splitlines()
    assert [line.split()[0] for line in lines] == ["key", *METHODS]
    assert len({line.index(METHODS[key]) for key, line in zip(METHODS, lines[1:], strict=True)}) == 1


def test_what_hash_functions_can_do_without_is_what_the_grid_runs_without_labels():
    on_z = [method_of(key) for key in METHODS if method_of(key).kind == "hash function on z"]
    assert [method.key for method in on_z if method.needs == "no labels"] == list(WITHOUT_LABELS)


def test_every_method_names_its_paper():
    assert all(method_of(key).paper[-4:].isdigit() for key in METHODS if key != "one_of_c")
