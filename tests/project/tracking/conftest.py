import pytest
from mlflow import MlflowClient

# So that what it asserts is explained as in a test.
pytest.register_assert_rewrite("tests.project.tracking.tracked_runs")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """One project for the module: MLflow takes seconds to make a database. Every test has a benchmark of its own."""
    return tmp_path_factory.mktemp("a project")


@pytest.fixture
def client(project):
    return lambda: MlflowClient(f"sqlite:///{project / 'mlflow.db'}")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Run in a working directory that is not the project, and find nothing written there."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    yield
    assert not list((tmp_path / "elsewhere").iterdir())
