"""Of every module that computes, a changed number makes what depends on it stale."""

import ast
import shutil

import pytest
from kedro.framework.project import pipelines
from kedro.framework.startup import bootstrap_project

from deephash_pipeline.images.sources.registry import SOURCES
from deephash_pipeline.project import datasets
from deephash_pipeline.project.datasets.atomic_file import AtomicFileDataset
from deephash_pipeline.provenance import sources as following
from tests.conftest import ROOT

PACKAGE = ROOT / "src" / "deephash_pipeline"


OF_NO_ARTEFACT = (
    "__main__",
    "cli",
    "project",
    "settings",
    # Trained, exported and searched in Python and by commands, by no node.
    "deephash.candidates",
    "deephash.estimator",
    "deephash.export",
    "deephash.feature_hash",
    "deephash.given_images",
    "deephash.recipes",
    "images.__main__",
    "images.decoding.apart",
    "images.decoding.sent",
    "retrieval.code_files",
    "embeddings",
    "encoding",
    "engines",
    "hamming",
    "photographs",
    "search",
    "service",
    # Where and when something is computed.
    "common.folders",
    "common.fork_server",
    "common.forks",
    "common.imports",
    "common.project_folder",
    "common.ray_cluster",
    "common.stores",
    # Whether a path may be written, and a script start workers.
    "common.outputs",
    "common.scripts",
    "common.writing",
    "hashers.files",
    # Which nodes there are: what each of them reads is part of its recipe.
    "pipeline_registry",
    "pipelines.grid",
    *(f"pipelines.{path.parent.name}.pipeline" for path in PACKAGE.glob("pipelines/*/pipeline.py")),
    "pipelines.shared.bundles",
    "pipelines.shared.inputs",
    # A transcription of the paper, for tests.
    "losses.exponentiated.reference",
)
"""Modules and packages that hold numbers which decide no artefact of a run."""


def numbers(node):
    """The numbers in a statement that are no part of an annotation, in the order of the text."""
    if isinstance(node, ast.Constant):
        return [node] if type(node.value) in (int, float) else []
    if isinstance(node, ast.JoinedStr | ast.MatchValue):
        return []
    parts = [part for field, part in ast.iter_fields(node) if field not in ("annotation", "returns")]
    below = [each for part in parts for each in (part if isinstance(part, list) else [part])]
    return [number for each in below if isinstance(each, ast.AST) for number in numbers(each)]


def modules():
    """Name -> file of all modules that count, those that make no name left out."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ("deephash_pipeline", *path.relative_to(PACKAGE).with_suffix("").parts)
        name = ".".join(parts).removesuffix(".__init__")
        if following._counts(name):
            found[name] = path
    return found


def everything():
    """All functions of nodes and classes of files, and all names in tables."""
    bootstrap_project(ROOT)
    nodes = {node for name in pipelines for node in pipelines[name].nodes}
    functions = {function for node in nodes for function in getattr(node.func, "functions", [node.func])}
    classes = {it for it in vars(datasets).values() if isinstance(it, type) and issubclass(it, AtomicFileDataset)}
    sources = {SOURCES[kind] for kind in SOURCES}
    tables = [
        following.table_entries(module, name)
        for module in modules()
        for name in following.read_module(module).statements
    ]
    return functions | classes | sources, {key for table in tables for key in table}


@pytest.fixture(scope="module")
def reached():
    """Module -> names in it that some artefact may depend on."""
    closures = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "_digests", lambda closure: closures.append(closure) or {})
        following.sources(*everything())
    found = {}
    for module, name in closures[-1]:
        found.setdefault(module, set()).add(name)
    return found


def statements(module):
    """Statement -> the names that it makes."""
    made = {}
    for name, of_name in following.read_module(module).statements.items():
        for statement in of_name:
            made.setdefault(statement, set()).add(name)
    return made


def is_below(module, packages):
    return any(f"{module}.".startswith(f"deephash_pipeline.{package}.") for package in packages)


FOLLOWED = ("_closure", "_digests", "_definition", "table_entries", "read_module", "_file")


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the package, and what has it followed in place of the package."""
    made = shutil.copytree(
        PACKAGE, tmp_path / "copy", ignore=shutil.ignore_patterns("__pycache__", "*.safetensors", "*.md")
    )
    find_root = following._root

    def follow():
        monkeypatch.setattr(following, "_root", lambda name: made if name == PACKAGE.name else find_root(name))
        forget()

    def forget():
        for cached in FOLLOWED:
            getattr(following, cached).cache_clear()

    yield made, follow
    monkeypatch.undo()
    forget()


def test_every_number_of_a_module_that_computes_is_followed(reached):
    lost = [
        f"{module}: {', '.join(names)}"
        for module in modules()
        if not is_below(module, OF_NO_ARTEFACT)
        for statement, names in statements(module).items()
        if numbers(statement) and not names & reached.get(module, set())
    ]
    assert lost == []


def test_a_changed_number_in_any_module_changes_the_digest_of_its_code(reached, copy):
    there, (made, follow) = modules(), copy
    changed = set()
    for module, names in reached.items():
        of_module = statements(module).items()
        if own := [
            number for statement, made_names in of_module if made_names & names for number in numbers(statement)
        ]:
            place, file = own[-1], made / there[module].relative_to(PACKAGE)
            lines = file.read_bytes().splitlines(keepends=True)
            line = lines[place.lineno - 1]
            number = f"({place.value!r} + 1)".encode()
            lines[place.lineno - 1] = line[: place.col_offset] + number + line[place.end_col_offset :]
            file.write_bytes(b"".join(lines))
            changed.add(module)
    given = everything()
    before = following.sources(*given)
    follow()
    after = following.sources(*given)
    assert len(changed) > 150
    assert {module for module in before if before[module] != after[module]} == changed


def test_a_changed_template_or_table_changes_the_digest_of_the_code_that_names_it(copy):
    made, follow = copy
    files = {"reports/templates/report.html.j2", "reports/templates/gallery.html.j2", "reports/paper/published.csv"}
    scripts = ("tiles.js", "folders.js", "large.js", "given.js", "search.js")
    # Of the pages of the service, of that of duplicates and of cards.
    others = {
        "photographs/look.css",
        "photographs/found.html.j2",
        "photographs/duplicates/page.css",
        "photographs/duplicates/page.js",
        *(f"service/page/{name}" for name in ("search.html", "search.css", *scripts)),
        "photographs/duplicates/page.html.j2",
        "deephash/export/templates/model_card.md.j2",
    }
    data = {path.relative_to(made).as_posix() for path in made.rglob("*.*") if path.suffix != ".py" and path.is_file()}
    assert data - {"py.typed"} == files | others
    for name in files:
        (made / name).write_bytes((made / name).read_bytes() + b" ")
    given = everything()
    before = following.sources(*given)
    follow()
    after = following.sources(*given)
    by = {"reports.page", "reports.gallery", "reports.paper.published"}
    assert {module for module in before if before[module] != after[module]} == {f"deephash_pipeline.{it}" for it in by}
