"""A plugin of Kedro that kills a run at moments counted in what its nodes do to files, never in seconds.

A node of a run does the same to the same files, under the same names, however often and wherever it is run: it begins
to write one, gives it its name, removes one. So a moment is a node, an event and a file; it comes on a slow machine as
on a fast one. A run without a plan writes its moments down; with one, each kill of the plan comes true once.

The plugin is found by an entry point in a folder of PYTHONPATH, and the command stays the one that a user types.
"""

import json
import os
import re
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from kedro.framework.hooks import hook_impl

FOLDER = "FOLDER_OF_KILLS"
"""Variable of the environment that names the folder of the plan."""
PLAN, MOMENTS = "plan.json", "moments.jsonl"
ALL_IS_MADE, STARTS = "all is made", "starts"
BEGINS, IN_THE_MIDST, IS_NAMED, IS_REMOVED = "begins", "in the midst", "is named", "is removed"
WORKER, RUN, GROUP = "worker", "run", "group"
"""What is killed: the process of the node, the one that the command is, or all that it has started as well."""
LOSSES_OF_A_NODE = 2
"""How often a run starts a node again whose worker is lost; then it is the run that is killed, not one more worker."""
SECONDS_OF_PATIENCE = 120
NUMBERS = re.compile(r"\.\d+(?=\.\w+$|$)|-[0-9a-f]{32}")
"""What tells the temporary files of one process from those of another."""


@dataclass(frozen=True)
class Moment:
    """When a node does something.

    Attributes:
        node: its name; empty for the run itself.
        event: what it does.
        file: to which file below ``data/``; empty for a node that starts.
    """

    node: str
    event: str
    file: str = ""


@dataclass(frozen=True)
class Kill:
    """SIGKILL at a moment.

    Attributes:
        moment: when.
        victim: who gets it.
    """

    moment: Moment
    victim: str


def write_plan(folder, kills):
    """Store a plan for the runs to come."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PLAN).write_text(json.dumps([asdict(kill) for kill in kills]), encoding="utf-8")


def read_moments(folder):
    """Read what a run without a plan has written down, each moment once."""
    lines = (folder / MOMENTS).read_text(encoding="utf-8").splitlines()
    return list(dict.fromkeys(Moment(**json.loads(line)) for line in lines))


@dataclass(frozen=True)
class Hit:
    """A kill that has come true.

    Attributes:
        victim: who was killed.
        run: process of the run whose node it was.
        node: at work.
    """

    victim: str
    run: int
    node: str


def come_true(folder):
    """Give what has come true of a plan, by the number of the kill in it."""
    contents = ((path, path.read_text(encoding="utf-8")) for path in folder.glob("[0-9]*"))
    # One that another process is just writing is empty.
    return {int(path.name): Hit(**json.loads(content)) for path, content in contents if content}


def installed_in(folder):
    """Make the folder that Kedro finds this plugin in."""
    information = folder / "killer-0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: killer\nVersion: 0\n", encoding="utf-8")
    (information / "entry_points.txt").write_text(f"[kedro.hooks]\nkiller = {__name__}:KILLER\n", encoding="utf-8")
    return folder


class Killer:
    """The hook, in the process that a node runs in.

    Args:
        run: the process that the command is.
    """

    def __init__(self, run):
        self._run = run

    def in_worker(self):
        """Give the hook for a worker."""
        return Killer(os.getpid())

    @hook_impl
    def before_node_run(self, node):
        """Watch what the node does."""
        watch = _Watch.of_process(self._run)
        watch.node = node.name
        watch.notice(STARTS)

    @hook_impl(tryfirst=True)
    def after_pipeline_run(self):
        """Note that all is made, but neither tracked to the end nor given back."""
        watch = _Watch.of_process(self._run)
        watch.node = ""
        watch.notice(ALL_IS_MADE)


class _Watch:
    """What a process does to files below ``data/``."""

    _of_process: "_Watch | None" = None

    def __init__(self, run):
        self.node = ""
        self._is_over = False
        self._run = run
        self._folder = Path(os.environ[FOLDER])
        self._data = Path("data").absolute()
        self._pending = None
        plan = self._folder / PLAN
        self._plan = None
        if plan.exists():
            kills = [Kill(**each | {"moment": Moment(**each["moment"])}) for each in json.loads(plan.read_text())]
            self._plan = {kill.moment: (number, kill) for number, kill in enumerate(kills)}

    @classmethod
    def of_process(cls, run):
        """Watch from now on, for Python knows no end of it."""
        if cls._of_process is None:
            cls._of_process = cls(run)
            sys.addaudithook(cls._of_process.hear)
        return cls._of_process

    def hear(self, event, arguments):
        """Take one of Python's audit events, which come before what they announce."""
        if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            self.notice(BEGINS, arguments[0])
        elif event == "os.rename":
            self.notice(IS_NAMED, arguments[1])
        elif event == "os.remove":
            self.notice(IS_REMOVED, arguments[0])

    def notice(self, event, path=None):
        """Write a moment down, or do what is planned for it."""
        file = self._below_data(path)
        if path is not None and not file:
            return
        if self._is_over:
            self._await_the_end()
        if self._pending is not None:
            self._strike(*self._pending)
        events = (event, IN_THE_MIDST) if event == BEGINS else (event,)
        for each in events:
            moment = Moment(self.node, each, file)
            if self._plan is None and (self.node or event == ALL_IS_MADE):
                with (self._folder / MOMENTS).open("a", encoding="utf-8") as moments:
                    moments.write(json.dumps(asdict(moment)) + "\n")
            elif self._plan is None or moment not in self._plan:
                continue
            elif each == IN_THE_MIDST:
                self._pending = self._plan[moment]
                threading.Thread(target=self._strike_once_written, args=(path, *self._pending), daemon=True).start()
            else:
                self._strike(*self._plan[moment])

    def _below_data(self, path):
        """Name a file as every process would; an empty text for one that lies elsewhere."""
        if not isinstance(path, str | os.PathLike):
            return ""
        absolute = Path(path).absolute()
        if not absolute.is_relative_to(self._data):
            return ""
        name = NUMBERS.sub("", absolute.name) if absolute.name.startswith(".") else absolute.name
        return absolute.relative_to(self._data).with_name(name).as_posix()

    def _strike_once_written(self, path, number, kill):
        """Strike as soon as something is in the file; the next event of this process strikes if that goes unseen."""
        while self._pending is not None:
            try:
                if os.stat(path).st_size:
                    break
            except FileNotFoundError:
                pass
        self._strike(number, kill)

    def _strike(self, number, kill):
        self._pending = None
        hits = come_true(self._folder).values()
        if any(hit.run == self._run and hit.victim in (RUN, GROUP) for hit in hits):
            self._await_the_end()
        lost = sum(hit == Hit(WORKER, self._run, self.node) for hit in hits)
        victim = RUN if kill.victim == WORKER and lost == LOSSES_OF_A_NODE else kill.victim
        try:
            # Once: the same moment comes again when the node is run again.
            mark = os.open(self._folder / str(number), os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return
        os.write(mark, json.dumps(asdict(Hit(victim, self._run, self.node))).encode())
        os.close(mark)
        if victim == GROUP:
            os.killpg(os.getpgid(self._run), signal.SIGKILL)
        else:
            os.kill(self._run if victim == RUN else os.getpid(), signal.SIGKILL)
            self._await_the_end()

    def _await_the_end(self):
        """Go no further than the planned moment at which the run was killed: the next run is to come to it."""
        self._is_over = True
        time.sleep(SECONDS_OF_PATIENCE)


KILLER = Killer(os.getpid())
