import pytest
from kedro.framework.startup import bootstrap_project

# So that what it asserts is explained as in a test.
pytest.register_assert_rewrite("tests.end_to_end.refused_runs")


@pytest.fixture(scope="module")
def a_project(new_project, request):
    """A project without data, for the tests of one file."""
    return new_project(request.module.__name__)


@pytest.fixture
def here(a_project, monkeypatch):
    """The project as the working directory, which is how the command finds it."""
    bootstrap_project(a_project)
    monkeypatch.chdir(a_project)
    return a_project
