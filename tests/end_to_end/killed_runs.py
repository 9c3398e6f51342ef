"""Real ``kedro run`` commands that are killed as planned and given again, until they have made everything."""

import hashlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

import psutil

from tests.conftest import ROOT, SMALL, copied_project
from tests.end_to_end import killer

PARAMETERS = {
    **SMALL,
    "data_ingestion.query_count": 1500,
    "cnn_pretraining.training.epochs": 10,
    "hash_layer_init.training.epochs": 10,
    "baseline_hashing.mlh.batches_per_stage": 2,
    "baseline_hashing.liong_sdh.iterations": 2,
    "baseline_hashing.ldah.positive_pairs": 1000,
    "baseline_hashing.ldah.negative_pairs": 1000,
    "baseline_hashing.ksh.iterations": 5,
}
"""Some 240 training images, and a few steps of each training."""
FEW_METHODS = '"itq", PRE_TRAINING, "deephash", "one_of_c"'
"""One of each kind: without training, stage 2 alone, both stages, and the classifier's."""
COMMAND = ["run", "--pipelines=full_at_32_bits", "--workers=2"]
# One thread, as equal bytes are promised for an equal number of them.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "NUMBA_THREADING_LAYER": "workqueue", "DO_NOT_TRACK": "true", "COLUMNS": "200"}
CHECKPOINT = "checkpoint-"
OF_RUN = 5
"""One kill of so many is of the run, by turns with all that it has started and of its process alone."""
SECONDS_TO_END = 30
SECONDS_OF_PATIENCE = 900


@dataclass(frozen=True)
class Ending:
    """How one start of the command has ended.

    Attributes:
        hits: what came true of the plan meanwhile, by number.
        status: exit status; negative for a process that a signal has ended.
        left: processes that were still there some time after.
    """

    hits: dict[int, killer.Hit]
    status: int
    left: int


@dataclass
class Project:
    """A project whose trainings save themselves at every step, and the command in it.

    Attributes:
        folder: of the project.
        sources: where the package is, if it is the project's own.
        log: of all starts.
    """

    folder: Path
    sources: Path | None = None
    log: str = field(default="", init=False)

    @classmethod
    def make(cls, folder, whole):
        """Make a project, with all methods of the paper's tables or with few."""
        copied_project(folder)
        with (folder / "conf" / "digits" / "globals.yml").open("a", encoding="utf-8") as settings:
            settings.write("\nseconds_between_checkpoints: 0\n")
        if whole:
            return cls(folder)
        shutil.copytree(ROOT / "src", folder / "src", dirs_exist_ok=True)
        grid = folder / "src" / "deephash_pipeline" / "pipelines" / "grid.py"
        lines = grid.read_text(encoding="utf-8").splitlines()
        at = next(number for number, line in enumerate(lines) if line.startswith("PAPER_METHODS = "))
        lines[at] = f"PAPER_METHODS = ({FEW_METHODS})"
        grid.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return cls(folder, folder / "src")

    @property
    def kills(self):
        """The folder of the plan, and of what has come true of it."""
        return self.folder.with_name(f"{self.folder.name}-kills")

    def run(self):
        """Give the command, and wait for its end and that of all it has started."""
        before = killer.come_true(self.kills)
        parameters = ",".join(f"{name}={value}" for name, value in PARAMETERS.items())
        plugin = self.folder.with_name("plugin")
        path = [plugin if plugin.exists() else killer.installed_in(plugin), ROOT, self.sources or ROOT / "src"]
        process = subprocess.Popen(
            [sys.executable, "-m", "kedro", *COMMAND, f"--params={parameters}"],
            cwd=self.folder,
            env={
                **os.environ,
                **ENVIRONMENT,
                killer.FOLDER: str(self.kills),
                "PYTHONPATH": os.pathsep.join(map(str, reversed(path))),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output = process.communicate(timeout=SECONDS_OF_PATIENCE)[0]
        finally:
            left = wait_for_end(process.pid)
        self.log += output
        hits = {number: hit for number, hit in killer.come_true(self.kills).items() if number not in before}
        return Ending(hits, process.returncode, left)

    def made(self):
        """What it has made; see `made`."""
        return made(self.folder)

    def checkpoints(self):
        """Names of the files in each folder of checkpoints."""
        folders = sorted((self.folder / "data").rglob("checkpoints"))
        return {str(folder.relative_to(self.folder)): sorted(os.listdir(folder)) for folder in folders}

    def tracked_runs(self):
        """Name and status of each run in MLflow: that of the command and those of cells."""
        with closing(sqlite3.connect(self.folder / "mlflow.db")) as database:
            return sorted(database.execute("select name, status from runs"))


def made(project):
    """SHA-256 of every file below ``data/`` but checkpoints: artefacts, manifests, and what should not be there."""
    files = (path for path in sorted((project / "data").rglob("*")) if path.is_file())
    return {
        str(path.relative_to(project)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not path.name.startswith(CHECKPOINT)
    }


def wait_for_end(session):
    """Wait until nothing is left of a session, and end what will not.

    Returns:
        How many processes had to be ended.
    """
    patience = time.monotonic() + SECONDS_TO_END
    while (left := list(processes_of(session))) and time.monotonic() < patience:
        time.sleep(0.02)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return len(left)


def processes_of(session):
    """Yield the processes of a session that are alive."""
    for process in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError):
            # One that has ended may wait for ever to be asked for its exit code, where nobody does so for orphans.
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                yield process


def plan(moments, number, draw):
    """Draw kills from the moments of an undisturbed run.

    The last kill is of a run that has made everything, but not come to its end. Half of the others are of trainings,
    spread over the stages; the rest over all nodes of all stages.
    """
    number -= 1
    certain = [
        moment
        for at, moment in enumerate(moments)
        if moment.node and (moment.event != killer.IS_REMOVED or _comes_again(moments, at))
    ]
    drawn = _spread([moment for moment in certain if CHECKPOINT in moment.file], number - number // 2, draw)
    drawn += _spread([moment for moment in certain if moment not in drawn], number // 2, draw)
    victims = islice(cycle([killer.WORKER] * (OF_RUN - 1) + [None]), number)
    of_run = cycle([killer.GROUP, killer.RUN])
    kills = [killer.Kill(moment, victim or next(of_run)) for moment, victim in zip(drawn, victims, strict=False)]
    last = [moment for moment in moments if moment.event == killer.ALL_IS_MADE]
    return [*kills, *(killer.Kill(moment, killer.RUN) for moment in last)]


def _comes_again(moments, at):
    """Say whether what is removed is an old checkpoint, with another after it: then no restart makes it needless."""
    later = (other for other in moments[at:] if other.node == moments[at].node and other.event == killer.BEGINS)
    return any(CHECKPOINT in other.file for other in later)


def _spread(moments, number, draw):
    """Draw moments from all stages by turns, and inside a stage from nodes at random."""
    stages = defaultdict(lambda: defaultdict(list))
    for moment in moments:
        stages[moment.node.partition(".")[0]][moment.node].append(moment)
    drawn = []
    for stage in cycle(sorted(stages)):
        if len(drawn) == number:
            return drawn
        if nodes := {node: left for node, left in stages[stage].items() if left}:
            left = nodes[draw.choice(sorted(nodes))]
            drawn.append(left.pop(draw.randrange(len(left))))
    return drawn


@dataclass
class Outcome:
    """What an undisturbed run and one that was killed again and again have made.

    Attributes:
        undisturbed: its project.
        disturbed: the other's.
        kills: the plan.
        endings: of the starts of the disturbed run, the last with exit status 0.
    """

    undisturbed: Project
    disturbed: Project
    kills: list[killer.Kill]
    endings: list[Ending]

    @property
    def hits(self):
        """What came true of the plan, by number."""
        return {number: hit for ending in self.endings for number, hit in ending.hits.items()}


def run_both(folder, number, seed, whole):
    """Run once undisturbed; then plan kills, and give the same command until it ends by itself.

    Raises:
        RuntimeError: a run has ended with an error that no kill explains.
    """
    undisturbed, disturbed = (Project.make(folder / name, whole) for name in ("undisturbed", "disturbed"))
    undisturbed.kills.mkdir()
    if undisturbed.run().status:
        raise RuntimeError(undisturbed.log)
    kills = plan(killer.read_moments(undisturbed.kills), number, random.Random(seed))
    killer.write_plan(disturbed.kills, kills)
    endings = [disturbed.run()]
    while endings[-1].status:
        if not endings[-1].hits or endings[-1].status != -signal.SIGKILL:
            raise RuntimeError(disturbed.log)
        endings.append(disturbed.run())
    return Outcome(undisturbed, disturbed, kills, endings)
