"""What the tests that run Kedro share: no telemetry, and a copy of the project to run it in."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from multiprocessing import forkserver
from pathlib import Path

import pytest
from omegaconf import OmegaConf

# It imports nothing that looks at the environment.
from deephash_pipeline.common.fork_server import environment

# Kedro, Kedro-Viz and MLflow all honour it, and read it when they are imported.
os.environ["DO_NOT_TRACK"] = "true"
# Files of two runs are compared byte by byte, reports with their date too.
os.environ["SOURCE_DATE_EPOCH"] = "0"
# One thread for PyTorch: equal runs then give equal bytes, and small tensors do not wait for a second core. numba keeps
# its threads to itself, for those of OpenMP it would share, and set, with PyTorch.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")
# In the background of a shell, or under `nohup`, Ctrl-C is ignored, and would be in every process that a test starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent

SMALL = {
    "experiment.device": "cpu",
    "data_ingestion.query_count": 1000,
    "data_ingestion.validation_share": 0.2,
    "cnn_pretraining.training.epochs": 2,
    "hash_layer_init.training.epochs": 2,
    "fine_tuning.default.training.epochs": 1,
    "baseline_hashing.mlh.batches_per_stage": 20,
    "baseline_hashing.liong_sdh.iterations": 10,
}


def nested_parameters(named):
    """Nest parameters with dotted names."""
    nested = OmegaConf.to_container(OmegaConf.from_dotlist([f"{key}={value}" for key, value in named.items()]))
    return {str(key): value for key, value in nested.items()}


def pytest_ignore_collect(collection_path):
    """Look for examples in tests alone, not in the scripts beside them, which do things when they are imported."""
    beside_tests = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if beside_tests and collection_path.is_relative_to(ROOT / "tests") else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Give each process of pytest-xdist whole files, and one of them all tests of the small run: it is made once.

    That run takes longest, so it comes first. xdist's own hook, which reads these marks, comes after this one.
    """
    for item in items:
        # Rivals and studies that nothing in src uses; their documents are checked in any case.
        timed = item.path.parent.name == "benchmarks" and item.path.stem not in ("test_documents", "test_verdicts")
        # Clients of PostgreSQL and Milvus, and Ray, are in the group `all` alone.
        if timed or item.path.parent.name == "engines":
            item.add_marker(pytest.mark.complete)
        of_small_run = "small_run" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("small_run" if of_small_run else item.path.stem))
    items.sort(key=lambda item: "small_run" not in getattr(item, "fixturenames", ()))


def copied_project(target):
    """Copy what Kedro needs. The package itself is installed, but Kedro insists on a folder for sources."""
    shutil.copytree(ROOT / "conf", target / "conf")
    for name in ("pyproject.toml", ".telemetry"):
        shutil.copy(ROOT / name, target)
    (target / "src").mkdir()
    return target


@pytest.fixture(scope="session")
def new_project(tmp_path_factory):
    """Make a project without data of its own, for tests that write some."""
    return lambda name: copied_project(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def project(new_project):
    """The one project that the small run writes into."""
    return new_project("project")


@pytest.fixture(scope="session")
def fork_server():
    """Start the process that workers are forked from with all they import; or each of them imports it by itself."""
    multiprocessing.set_forkserver_preload(["deephash_pipeline.project.runners.preloaded", "tests.hamming.writer"])
    with environment():
        forkserver.ensure_running()


@pytest.fixture(scope="session")
def weights(tmp_path_factory):
    """A file of the state of torchvision's squeezenet1_1, for tests of features."""
    import torch  # noqa: PLC0415 - looks at the environment
    from torchvision.models import squeezenet1_1  # noqa: PLC0415

    file = tmp_path_factory.mktemp("weights") / "squeezenet1_1.pth"
    with torch.random.fork_rng():
        torch.manual_seed(5)
        torch.save(squeezenet1_1().state_dict(), file)
    return str(file)


@pytest.fixture(scope="session")
def kedro():
    """Run a Kedro command in a project, as a user would, and collect what it prints."""

    def command(project, *arguments):
        return subprocess.run(
            [sys.executable, "-m", "kedro", *arguments],
            cwd=project,
            env={**os.environ, "COLUMNS": "160"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=False,
        )

    return command


@pytest.fixture(scope="session")
def small_parameters():
    """What makes a run of all stages small."""
    return f"--params={','.join(f'{key}={value}' for key, value in SMALL.items())}"


@pytest.fixture(scope="session")
def small_run(project, kedro, small_parameters):
    """Run all stages once, on few images and for few epochs, for every test that looks at results."""
    finished = kedro(project, "run", "--pipelines=full", small_parameters)
    assert finished.returncode == 0, finished.stdout
    return finished


@pytest.fixture(scope="session")
def finished_project(project, small_run):
    """The project with the results of the small run; not to be changed."""
    assert small_run.returncode == 0
    return project
