"""A project in which every artefact of the full graph lies, with its manifest and without having been computed."""

import pytest
from kedro.framework.project import pipelines
from kedro.framework.startup import bootstrap_project

from deephash_pipeline.cli.provenance import open_catalog
from deephash_pipeline.project.freshness.graph import ProjectGraph
from deephash_pipeline.provenance.manifest import manifest_path, manifest_text, read_manifest
from tests.conftest import copied_project


def make_up(project, pipeline, catalog):
    """Write every output of a pipeline, some bytes that name it, as if its nodes had run."""
    graph = ProjectGraph(pipeline.nodes, catalog)
    for node in pipeline.nodes:
        origin = graph.origin(node, {"version": "0.1.0"}, "kedro run --pipelines=full")
        for name in node.outputs:
            path = graph.path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(f"content of {name}\n".encode() * 3)
            manifest_path(path).write_text(manifest_text(name, path, origin))
    assert project.is_dir()


@pytest.fixture(scope="session")
def made_up(tmp_path_factory):
    """The project; not to be changed."""
    project = copied_project(tmp_path_factory.mktemp("made_up") / "project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        bootstrap_project(project)
        make_up(project, pipelines["full"], open_catalog(None))
    return project


@pytest.fixture
def project(made_up, monkeypatch):
    """The project as the working directory; what a test changes in it, it puts back."""
    bootstrap_project(made_up)
    monkeypatch.chdir(made_up)
    return made_up


@pytest.fixture(scope="session")
def unchanged_catalog(made_up):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made_up)
        bootstrap_project(made_up)
        return open_catalog(None)


@pytest.fixture
def catalog(project, unchanged_catalog):
    """The catalog of the project, with the parameters that its artefacts were made with."""
    assert project.is_dir()
    return unchanged_catalog


@pytest.fixture
def kept(made_up):
    """Put back what a test changes or deletes, and delete what it adds."""
    files = {path: path.read_bytes() for path in (made_up / "data").rglob("*") if path.is_file()}
    yield
    for path in (made_up / "data").rglob("*"):
        if path.is_file() and path not in files:
            path.unlink()
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)


@pytest.fixture(scope="session")
def artefacts(made_up):
    """Name -> path below the project of all that has a manifest."""
    found = {}
    for path in sorted((made_up / "data").rglob("*.provenance.json")):
        file = path.with_name(path.name.removesuffix(".provenance.json"))
        found[read_manifest(file).name] = file.relative_to(made_up)
    return found
