"""`docs/add-a-method.md` to the letter: the file, the line and the block are put where it says, and the method runs."""

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


@pytest.fixture
def blocks() -> dict[str, str]:
    """What the document puts into each file for a hash function."""
    return blocks_below("A hash function on features")


def blocks_below(heading: str) -> dict[str, str]:
    """What the document puts into each file, below a heading."""
    text = (ROOT / "docs" / "add-a-method.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return {found["path"].rpartition("/")[2]: found["content"] for found in BLOCK.finditer(section)}


def test_the_documented_method_runs_and_is_evaluated(
    blocks: dict[str, str], finished_project: Path, new_project: Callable[[str], Path], small_parameters: str
) -> None:
    project = new_project("with_a_method")
    shutil.copytree(finished_project / "data", project / "data")
    shutil.rmtree(project / "src")
    shutil.copytree(ROOT / "src", project / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    hashing = project / "src" / "deephash_pipeline" / "hashing"
    (hashing / "median_lsh.py").write_text(blocks["median_lsh.py"], encoding="utf-8")
    registry = (hashing / "registry.py").read_text(encoding="utf-8")
    with_line = registry.replace('    "lsh": LSH,\n', f'    "lsh": LSH,\n{blocks["registry.py"]}')
    assert with_line != registry
    imported = "from deephash_pipeline.hashing.median_lsh import MedianLSH\n"
    (hashing / "registry.py").write_text(
        with_line.replace("\nHASH_FUNCTIONS", f"\n{imported}\nHASH_FUNCTIONS", 1), encoding="utf-8"
    )
    with (project / "conf" / "base" / "parameters_baseline_hashing.yml").open("a", encoding="utf-8") as parameters:
        parameters.write(blocks["parameters_baseline_hashing.yml"])

    finished = subprocess.run(
        [
            sys.executable,
            "-m",
            "kedro",
            "run",
            "--pipelines=field",
            "--namespaces=median_lsh.b12",
            small_parameters,
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
    metrics = {
        method: pd.read_json(results / method / "b12" / "metrics.json", typ="series")
        for method in ("lsh", "median_lsh")
    }
    assert metrics["median_lsh"]["method"] == "median_lsh"
    assert metrics["median_lsh"]["mean_average_precision"] > metrics["median_lsh"]["chance_level"]


def test_the_documented_loss_trains_and_is_evaluated(
    finished_project: Path, new_project: Callable[[str], Path], small_parameters: str
) -> None:
    blocks = blocks_below("A loss of the network")
    project = new_project("with_a_loss")
    shutil.copytree(finished_project / "data", project / "data")
    shutil.rmtree(project / "src")
    shutil.copytree(ROOT / "src", project / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    losses = project / "src" / "deephash_pipeline" / "losses"
    (losses / "cosine_pairs.py").write_text(blocks["cosine_pairs.py"], encoding="utf-8")
    registry = (losses / "registry.py").read_text(encoding="utf-8")
    with_line = registry.replace('    "csq": CSQ,\n', f'    "csq": CSQ,\n{blocks["registry.py"]}')
    assert with_line != registry
    imported = "from deephash_pipeline.losses.cosine_pairs import CosinePairs\n"
    (losses / "registry.py").write_text(with_line.replace("\nLOSSES", f"\n{imported}\nLOSSES", 1), encoding="utf-8")
    with (project / "conf" / "base" / "parameters_fine_tuning.yml").open("a", encoding="utf-8") as parameters:
        parameters.write(blocks["parameters_fine_tuning.yml"])

    finished = subprocess.run(
        [
            sys.executable,
            "-m",
            "kedro",
            "run",
            "--pipelines=field",
            "--namespaces=cosine_pairs.b12",
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
    metrics = pd.read_json(project / "data/07_model_output/digits/cosine_pairs/b12/metrics.json", typ="series")
    assert metrics["method"] == "cosine_pairs"
    assert metrics["mean_average_precision"] > 2 * metrics["chance_level"]
