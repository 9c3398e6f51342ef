"""`docs/add-a-method.md` to the letter: what it prints goes where it says, runs, is tested, and makes nothing stale."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from kedro.framework.project import pipelines
from kedro.framework.startup import bootstrap_project

from deephash_pipeline.cli.provenance import open_catalog
from tests.provenance.conftest import make_up

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```\w+\n# (?P<path>[\w/.]+)(?P<place>[^\n]*)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL)
ADDED = (
    *("median_lsh", "MedianLSH", "kernel_lsh", "KernelLSH", "cosine_pairs", "CosinePairs"),
    *("small_lenet", "npz", "shapes"),
)
"""Names of what the page adds, as they are in the names of tests."""
TESTS = ("hashing", "losses", "networks", "images/sources", "project/test_environments.py", "deephash/test_hasher.py")


def add_what_the_page_prints(project):
    """Put every block of the page that names a file into a project: a file, a line of a table, or more parameters."""
    page = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
    for block in BLOCK.finditer(page):
        path = project / block["path"]
        if not block["place"]:
            assert not path.exists()
            path.parent.mkdir(exist_ok=True)
            path.write_text(block["content"], encoding="utf-8")
        elif table := re.fullmatch(r", in (\w+)", block["place"]):
            text = path.read_text(encoding="utf-8")
            first = re.search(rf"^{table[1]}\b[^{{]*{{\n", text, re.MULTILINE)
            path.write_text(f"{text[: first.end()]}{block['content']}{text[first.end() :]}", encoding="utf-8")
        else:
            with path.open("a", encoding="utf-8") as parameters:
                parameters.write(block["content"])


def run(project, *command):
    """Run a command of Python in a project, by its own sources."""
    finished = subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    return finished.stdout


def with_sources(project):
    """Give a project sources of its own."""
    shutil.rmtree(project / "src")
    # With what Python and numba have compiled: it is found again, by path below the package, time and size.
    shutil.copytree(ROOT / "src", project / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    return project


@pytest.fixture(scope="module")
def with_everything(new_project):
    """A project whose artefacts were made up, to which all that the page prints is then added."""
    project = with_sources(new_project("with_everything"))
    shutil.copytree(ROOT / "tests", project / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        # Kedro puts the project's sources before those of this repository, for all processes to come.
        patch.setattr(sys, "path", sys.path[:])
        patch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
        bootstrap_project(project)
        make_up(project, pipelines["full"], open_catalog(None))
    add_what_the_page_prints(project)
    return project


def test_what_is_added_makes_nothing_stale(with_everything):
    status = run(with_everything, "-m", "deephash_pipeline", "status", "--pipelines=full")
    assert re.fullmatch(r"\d+ fresh\n", status)


@pytest.mark.complete
def test_what_is_added_passes_the_tests_that_go_over_all_of_its_kind(with_everything):
    tests = [f"tests/{name}" for name in TESTS]
    options = ["-q", "-p", "no:cacheprovider", "-k", " or ".join(ADDED)]
    summary = run(with_everything, "-m", "pytest", *options, *tests)
    assert int(re.findall(r"(\d+) passed", summary)[-1]) >= 50


@pytest.mark.complete
def test_the_documented_source_is_read_by_the_documented_benchmark(with_everything):
    folder = with_everything / "data/01_raw/shapes"
    folder.mkdir(parents=True)
    pixels = np.random.default_rng(0).integers(0, 256, (900, 1, 28, 28), dtype=np.uint8)
    np.savez(folder / "images.npz", images=pixels, labels=np.arange(900) % 3)
    run(with_everything, "-m", "kedro", "run", "--pipelines=data_ingestion", "--env=shapes")
    made = with_everything / "data/02_intermediate/shapes"
    assert np.load(made / "query/images.npy").shape == (500, 1, 28, 28)
    assert np.load(made / "training/images.npy").shape == (400, 1, 28, 28)


@pytest.fixture(scope="module")
def with_methods(finished_project, new_project):
    """A finished project to which all that the page prints is added."""
    added = with_sources(new_project("with_methods"))
    shutil.copytree(finished_project / "data", added / "data")
    add_what_the_page_prints(added)
    return added


@pytest.mark.complete
def test_the_documented_methods_run_and_are_evaluated(with_methods, small_parameters):
    run(
        with_methods,
        *("-m", "kedro", "run", "--pipelines=field"),
        "--namespaces=median_lsh.b12,kernel_lsh.b12,cosine_pairs.b12",
        f"{small_parameters},fine_tuning.cosine_pairs.training.epochs=3",
    )
    results = with_methods / "data" / "07_model_output" / "digits"
    for method, factor in {"median_lsh": 1, "kernel_lsh": 1, "cosine_pairs": 2}.items():
        metrics = pd.read_json(results / method / "b12" / "metrics.json", typ="series")
        assert metrics["method"] == method
        assert metrics["mean_average_precision"] > factor * metrics["chance_level"]
