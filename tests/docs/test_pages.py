"""What documents say is there: links, commands, examples, and the site that is made of them."""

import doctest
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import deephash_pipeline
from deephash_pipeline.cli.commands import COMMANDS as OF_PACKAGE
from deephash_pipeline.cli.project import parsed_cell
from deephash_pipeline.pipeline_registry import register_pipelines
from deephash_pipeline.project.environments import environments

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "src").rglob("README.md"),
    ]
)
TEXT = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
# Its methods are made in tests/end_to_end, which run its commands.
OF_NEW_METHODS = "docs/add-a-method.md"
EXAMPLES = [page for page, text in TEXT.items() if ">>>" in text]
TESTS = set(re.findall(r"def (test_\w+)", "".join(file.read_text("utf-8") for file in (ROOT / "tests").rglob("*.py"))))


def commands(text):
    """The words of every command line in the blocks of a console, and of every `kedro run ...` in the text."""
    blocks = "".join(block for language, block in FENCED.findall(text) if language == "console")
    lines = blocks.replace("\\\n", " ").splitlines() + re.findall(r"`((?:kedro|make|deephash-pipeline) [^`]+)`", text)
    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words and not re.search(r"…|\.\.\.|\$\(|<", line):
            yield words


def option(words, *names):
    """Values of an option, which commas separate."""
    values = [word.partition("=")[2] for word in words if word.partition("=")[0] in names]
    return [part.strip() for value in values for part in value.split(",") if part.strip()]


COMMANDS = [(page, words) for page, text in TEXT.items() for words in commands(text)]
KEDRO_RUNS = [
    pytest.param(words, id=f"{page}: {' '.join(words)[:80]}")
    for page, words in COMMANDS
    if words[:2] in (["kedro", "run"], ["deephash-pipeline", "run"]) and page != OF_NEW_METHODS
]


@pytest.mark.parametrize("page", TEXT)
def test_files_that_links_lead_to_and_tests_that_pages_name_are_there(page):
    text = FENCED.sub("", TEXT[page])
    assert [link for link in LINK.findall(text) if not ((ROOT / page).parent / link).exists()] == []
    assert set(re.findall(r"`(test_\w+)`", text)) - TESTS == set()


@pytest.fixture(scope="module")
def pipelines():
    return register_pipelines()


@pytest.mark.parametrize("words", KEDRO_RUNS)
def test_pipelines_namespaces_and_environments_of_commands_are_there(words, pipelines):
    names = option(words, "--pipeline", "--pipelines") or ["__default__"]
    assert set(names) <= set(pipelines)
    if environment := option(words, "--env"):
        assert environment[0] in environments(ROOT / "conf")
    nodes = {node.namespace or "" for name in names for node in pipelines[name].nodes}
    stages = {namespace.partition(".")[0] for namespace in nodes}
    for namespace in option(words, "--namespaces"):
        candidates = [namespace, *(f"{stage}.{namespace}" for stage in stages)]
        assert any(f"{node}.".startswith(f"{candidate}.") for node in nodes for candidate in candidates), namespace


def test_targets_of_make_and_commands_of_the_package_are_there():
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page, words in COMMANDS:
        if words[0] == "make" and words[1][0] != ".":
            assert words[1] in targets, page
        if words[0] == "deephash-pipeline" and words[1][0] != "-":
            assert words[1] in OF_PACKAGE, page
        if words[:2] == ["deephash-pipeline", "hasher"] and len(words) > 2:
            assert words[2] in environments(ROOT / "conf"), page
            parsed_cell(words[3])


@pytest.mark.parametrize("page", EXAMPLES)
def test_examples_print_what_the_page_says(page, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    # Kedro, which the commands import, prints information where a reader's Python does not.
    caplog.set_level("WARNING", "deephash_pipeline")
    text = "\n".join(block for language, block in FENCED.findall(TEXT[page]) if language == "python" and ">>>" in block)
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    output = []
    assert test.examples
    assert doctest.DocTestRunner(verbose=False).run(test, out=output.append).failed == 0, "".join(output)


@pytest.mark.complete
def test_the_site_is_built_without_a_warning_and_asks_nothing_of_other_servers(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, built.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))
    loaded = re.compile(r"<(?:script|img|iframe)[^>]+src=\"?(?:https?:)?//|<link[^>]+href=\"?(?:https?:)?//")
    assert [page for page in pages if loaded.search(page.read_text(encoding="utf-8"))] == []
    for sheet in tmp_path.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"'(]*(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


@pytest.mark.parametrize("package", sorted(set(re.findall(r"^\| \[(\w+)\]", TEXT["docs/api/index.md"], re.MULTILINE))))
def test_packages_that_are_public_name_what_they_offer(package):
    module = importlib.import_module(f"deephash_pipeline.{package}")
    names = getattr(module, "__all__", [])
    assert names or package == "images"
    assert [name for name in names if not hasattr(module, name)] == []


def test_changelog_citation_and_package_name_one_version():
    [newest, *_] = re.findall(r"^## \[(\d[^\]]*)\]", TEXT["CHANGELOG.md"], re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert newest == citation["version"] == deephash_pipeline.__version__


@pytest.mark.parametrize("name", [".pre-commit-config.yaml", ".github/workflows/ci.yml"])
def test_what_checks_a_commit_calls_programs_of_the_project(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    yaml.safe_load(text)
    assert all((ROOT / path).exists() for path in re.findall(r"bash (\S+)", text))


# Pages below docs/results/paper keep the paper's order of rows.
RESULTS = [page for page, text in TEXT.items() if re.match(r"docs/results/[^/]+$", page) and "\n| method |" in text]


@pytest.mark.parametrize("page", RESULTS)
def test_a_table_that_orders_methods_names_the_search_that_its_rows_had(page):
    of_page, *sections = re.split(r"^## ", TEXT[page], flags=re.MULTILINE)
    of_all = "*Search*: " in of_page
    assert [
        part.splitlines()[0]
        for part in (of_page, *sections)
        if "\n| method |" in part and not (of_all or "*Search*: " in part)
    ] == []


def test_the_first_words_of_a_module_name_its_subject():
    begins = {path: path.read_text("utf-8").lstrip("r").lstrip('"') for path in (ROOT / "src").rglob("*.py")}
    assert [path.name for path, text in begins.items() if text.startswith("What ")] == []
