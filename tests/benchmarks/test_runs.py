import pytest

from benchmarks.studies.runs import finished_run
from deephash_pipeline.common.errors import InputError


def test_without_a_finished_run_one_line_names_the_command_that_makes_it(new_project):
    command = "make it by `kedro run --pipelines=full --env=mnist`"
    with (
        pytest.raises(InputError, match=f"training_images is missing or unreadable: {command}"),
        finished_run("mnist", new_project("without_a_run")) as catalog,
    ):
        catalog.load("training_images")
