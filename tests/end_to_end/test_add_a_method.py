"""`docs/add-a-method.md` to the letter: files, lines and blocks are put where it says, and the methods run."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```\w+\n# (?P<path>[\w/.]+)(?P<place>[^\n]*)\n(?P<content>.*?)^```$", re.MULTILINE | re.DOTALL)


def add(project: Path, heading: str, import_line: str, after: str, table: str) -> None:
    """Put into a project what the document has below a heading: a file, a line in a table, a block of parameters."""
    text = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    module, line, block = BLOCK.finditer(section)
    (project / module["path"]).write_text(module["content"], encoding="utf-8")
    registry = (project / line["path"]).read_text(encoding="utf-8")
    with_line = registry.replace(after, f"{after}{line['content']}")
    assert with_line != registry
    with_import = with_line.replace(f"\n{table}", f"\n{import_line}\n\n{table}", 1)
    (project / line["path"]).write_text(with_import, encoding="utf-8")
    with (project / block["path"]).open("a", encoding="utf-8") as parameters:
        parameters.write(block["content"])


@pytest.fixture(scope="module")
def project(finished_project: Path, new_project: Callable[[str], Path]) -> Path:
    """A finished project with sources of its own, to which both documented methods are added."""
    added = new_project("with_methods")
    shutil.copytree(finished_project / "data", added / "data")
    shutil.rmtree(added / "src")
    # With what Python and numba have compiled: it is found again, by path below the package, time and size.
    shutil.copytree(ROOT / "src", added / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    package = "from deephash_pipeline"
    add(
        added,
        "A hash function on features",
        f"{package}.hashing.median_lsh import MedianLSH",
        '    "lsh": LSH,\n',
        "HASH_FUNCTIONS",
    )
    add(
        added,
        "A loss of the network",
        f"{package}.losses.cosine_pairs import CosinePairs",
        '    "csq": CSQ,\n',
        "LOSSES",
    )
    return added


def test_the_documented_methods_run_and_are_evaluated(project: Path, small_parameters: str) -> None:
    finished = subprocess.run(
        [
            *(sys.executable, "-m", "kedro", "run", "--pipelines=field"),
            "--namespaces=median_lsh.b12,cosine_pairs.b12",
            f"{small_parameters},fine_tuning.cosine_pairs.training.epochs=3",
        ],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout
    results = project / "data" / "07_model_output" / "digits"
    for method, factor in {"median_lsh": 1, "cosine_pairs": 2}.items():
        metrics = pd.read_json(results / method / "b12" / "metrics.json", typ="series")
        assert metrics["method"] == method
        assert metrics["mean_average_precision"] > factor * metrics["chance_level"]
