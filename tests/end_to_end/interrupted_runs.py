"""Real ``kedro run`` processes that train on the embedded digits, and signals sent to them in the midst of a training.

They save a checkpoint at every step, so that many signals fall into the writing of one.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
CELL = "b12"
MODELS = Path("data/06_models/digits")
COMMAND = [
    "run",
    "--pipelines=data_ingestion,cnn_pretraining,feature_extraction,hash_layer_init,fine_tuning",
    f"--namespaces=data_ingestion,cnn_pretraining,feature_extraction,deephash_pretrained.{CELL},deephash.{CELL}",
]
# Some 400 training images, and steps enough that a signal which comes late still falls into training.
PARAMETERS = {
    "experiment.device": "cpu",
    "data_ingestion.query_count": 1300,
    "data_ingestion.validation_share": 0.2,
    "cnn_pretraining.training.epochs": 8,
    "hash_layer_init.training.epochs": 30,
    "fine_tuning.deephash.training.epochs": 6,
    "fine_tuning.deephash.training.batch_size": 64,
}
# One thread, as equal bytes are promised for an equal number of them.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "NUMBA_THREADING_LAYER": "workqueue", "DO_NOT_TRACK": "true", "COLUMNS": "200"}
LONGEST_DELAY = 0.06
SHARE_OF_WORKERS = 0.5
"""How often a worker is killed before the run itself is."""
SECONDS_TO_END = 30
SECONDS_OF_PATIENCE = 600
POLITE = (signal.SIGTERM, signal.SIGINT)
"""Signals that ask a training to stop instead of killing it."""


@dataclass(frozen=True)
class Stage:
    """A training of the run.

    Attributes:
        name: for the report.
        checkpoints: folder of its checkpoints in the project.
        longest_advance: most steps to wait for before a signal.
    """

    name: str
    checkpoints: Path
    longest_advance: int


STAGES = (
    Stage("pre-training", MODELS / "pre_training/checkpoints", 6),
    Stage("stage 2", MODELS / "deephash_pretrained" / CELL / "checkpoints", 25),
    Stage("fine-tuning", MODELS / "deephash" / CELL / "checkpoints", 4),
)


@dataclass(frozen=True)
class Ending:
    """How an interrupted run has ended.

    Attributes:
        number: of the signal that it was sent.
        stage: whose training was hit; None if the signal fell between two.
        steps: of that training that were saved.
        status: exit status, negative for a process that the signal itself has ended.
        last_line: of its output.
        killed_workers: how many of its workers were killed before.
    """

    number: signal.Signals
    stage: Stage | None
    steps: int
    status: int
    last_line: str
    killed_workers: int


@dataclass
class Run:
    """A command in progress."""

    process: subprocess.Popen[bytes]
    log: Path
    killed_workers: int = 0

    def output(self) -> str:
        """What it has printed."""
        return self.log.read_text(encoding="utf-8")

    def workers(self) -> list[psutil.Process]:
        """Give the processes that run nodes: those that the fork server has forked."""
        try:
            return [process for child in psutil.Process(self.process.pid).children() for process in child.children()]
        except psutil.NoSuchProcess:
            return []

    def finish(self) -> None:
        """Wait until it is done.

        Raises:
            RuntimeError: it has failed.
        """
        if self.process.wait(SECONDS_OF_PATIENCE) != 0:
            raise RuntimeError(f"the run has failed:\n{self.output()}")


def make_project(folder: Path) -> Path:
    """Make a project whose trainings save themselves at every step."""
    shutil.copytree(ROOT / "conf", folder / "conf")
    for name in ("pyproject.toml", ".telemetry"):
        shutil.copy(ROOT / name, folder)
    (folder / "src").mkdir()
    with (folder / "conf" / "digits" / "globals.yml").open("a", encoding="utf-8") as settings:
        settings.write("\nseconds_between_checkpoints: 0\n")
    return folder


def begin(project: Path) -> Run:
    """Give the command in a project."""
    parameters = ",".join(f"{name}={value}" for name, value in PARAMETERS.items())
    log = project / "output.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "kedro", *COMMAND, f"--params={parameters}"],
            cwd=project,
            env={**os.environ, **ENVIRONMENT},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return Run(process, log)


def interrupt(project: Path, stage: Stage, number: signal.Signals, draw: random.Random) -> Ending | None:
    """Give the command, let a stage make some steps, and send a signal at a moment of chance.

    Returns:
        None if the run was done before.

    Raises:
        RuntimeError: the run fails, or makes no progress.
    """
    target = saves(project, stage) + draw.randint(1, stage.longest_advance)
    delay = draw.uniform(0, LONGEST_DELAY)
    later = STAGES[STAGES.index(stage) + 1 :]
    run = begin(project)
    _wait(run, lambda: saves(project, stage) >= target or any(saves(project, other) for other in later))
    time.sleep(delay)
    if number in POLITE and run.process.poll() is None and not _stopped_in_training(run, project):
        # Too late for any training to hear it.
        number = signal.SIGKILL
    workers = run.workers()
    if workers and number == signal.SIGKILL and draw.random() < SHARE_OF_WORKERS:
        # The run starts another worker for the node and goes on; then it is killed itself.
        before, lost = saves(project, stage), draw.choice(workers)
        lost.kill()
        run.killed_workers += 1
        _wait(run, lambda: saves(project, stage) > before or any(saves(project, other) for other in later))
        workers = run.workers()
    if run.process.poll() is None:
        run.process.send_signal(number)
        run.process.send_signal(signal.SIGCONT)
    status = run.process.wait(SECONDS_OF_PATIENCE)
    _, left = psutil.wait_procs(workers, timeout=SECONDS_TO_END)
    if left:
        raise RuntimeError(f"{len(left)} processes have outlived the run that has started them")
    if status == 0:
        return None
    training = training_in(project)
    lines = run.output().splitlines()
    return Ending(
        number,
        training.stage if training else None,
        training.progress["steps"] if training else 0,
        status,
        lines[-1] if lines else "",
        run.killed_workers,
    )


def saves(project: Path, stage: Stage) -> int:
    """How many checkpoints a stage has made so far."""
    names = [path.stem for path in (project / stage.checkpoints).glob("checkpoint-*.json")]
    return max((int(name.removeprefix("checkpoint-")) for name in names), default=0)


@dataclass(frozen=True)
class UnfinishedTraining:
    """What its last checkpoint says about a training."""

    stage: Stage
    progress: dict[str, Any]
    configuration: dict[str, Any]


def training_in(project: Path) -> UnfinishedTraining | None:
    """Give the training that a project is in; None between two of them."""
    for stage in STAGES:
        documents = sorted((project / stage.checkpoints).glob("checkpoint-*.json"))
        if not documents:
            return None
        content = json.loads(documents[-1].read_text(encoding="utf-8"))["content"]
        if not content["progress"]["finished"]:
            return UnfinishedTraining(stage, content["progress"], content["configuration"])
    return None


def results(project: Path) -> dict[str, str]:
    """SHA-256 of every file that runs have made, but checkpoints and what a kill has left under a temporary name."""
    made = [path for path in sorted((project / "data").rglob("*")) if path.is_file() and not path.name.startswith(".")]
    return {
        str(path.relative_to(project)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in made
        if path.parent.name != "checkpoints"
    }


def _wait(run: Run, happened: Callable[[], bool]) -> None:
    """Wait until something has happened or the run is done."""
    patience = time.monotonic() + SECONDS_OF_PATIENCE
    while run.process.poll() is None and not happened():
        if time.monotonic() > patience:
            run.process.kill()
            raise RuntimeError(f"the run makes no progress:\n{run.output()}")
        time.sleep(0.002)
    if run.process.returncode not in (None, 0):
        raise RuntimeError(f"the run has failed:\n{run.output()}")


def _stopped_in_training(run: Run, project: Path) -> bool:
    """Stop a run for a moment: has a training some epochs to go? Then its worker will hear of what the run is sent."""
    run.process.send_signal(signal.SIGSTOP)
    _, status = os.waitpid(run.process.pid, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        run.process.returncode = os.waitstatus_to_exitcode(status)
        return False
    training = training_in(project)
    return training is not None and training.progress["epoch"] + 2 < training.configuration["training.epochs"]
