"""Kills runs again and again, and compares what they end with with an undisturbed run: `python -m benchmarks.chaos`.

A run is pre-training, stage 2 and fine-tuning at one code length, by the command that a user types. After each kill the
same command is given again. In the end every file that it has made must have the SHA-256 that it has without a kill.
"""

import argparse
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.interrupted_runs import (
    POLITE,
    STAGES,
    Ending,
    Stage,
    begin,
    interrupt,
    make_project,
    results,
)

KILLS_IN_A_ROUND = 12
"""A round is one run from its beginning to its end; more kills in it would leave too few steps between them."""
ASKED_TO_STOP = {signal.SIGTERM: STAGES[0], signal.SIGINT: STAGES[-1]}


@dataclass
class Outcome:
    """What has come of it.

    Attributes:
        endings: of all processes that were sent a signal.
        differing: files that are not those of the undisturbed run, or are missing, or too many.
        projects: where the rounds have run.
    """

    endings: list[Ending] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)
    projects: list[Path] = field(default_factory=list)

    def hits(self) -> Counter[tuple[str, str]]:
        """How often which signal has hit the training of which stage."""
        return Counter((ending.stage.name, ending.number.name) for ending in self.endings if ending.stage)

    def hits_of(self, number: signal.Signals) -> int:
        """How often a signal has hit any training."""
        return sum(hits for (_, name), hits in self.hits().items() if name == number.name)


def spread_chaos(folder: Path, kills: int, seed: int, say: Callable[[str], None] = lambda _: None) -> Outcome:
    """Run undisturbed and disturbed, in as many rounds as it takes to hit training so often.

    Args:
        folder: for the projects; must exist.
        kills: SIGKILLs that must hit a training. Besides, each signal that asks to stop must hit one.
        seed: of the moments.
        say: told of every signal.

    Raises:
        RuntimeError: a run fails, or makes no progress.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # In the background of a shell Ctrl-C is ignored, and would be in every process that is started here.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    outcome, draw = Outcome(), random.Random(seed)
    reference = make_project(folder / "undisturbed")
    undisturbed = begin(reference)
    while plan := plan_round(kills - outcome.hits_of(signal.SIGKILL), [n for n in POLITE if not outcome.hits_of(n)]):
        project = make_project(folder / f"round-{len(outcome.projects) + 1}")
        outcome.projects.append(project)
        for stage, number in plan:
            ending = interrupt(project, stage, number, draw)
            if ending is not None:
                outcome.endings.append(ending)
                where = f"in {ending.stage.name} after step {ending.steps}" if ending.stage else "between two trainings"
                say(f"{project.name}: {ending.number.name} {where}")
        begin(project).finish()
        undisturbed.finish()
        expected, found = results(reference), results(project)
        unlike = [name for name in expected.keys() | found.keys() if expected.get(name) != found.get(name)]
        outcome.differing += sorted(f"{project.name}/{name}" for name in unlike)
        say(f"{project.name}: {len(expected)} files compared, {len(unlike)} differ")
    return outcome


def plan_round(kills: int, polite: list[signal.Signals]) -> list[tuple[Stage, signal.Signals]]:
    """Spread over the stages of a round what is still to be sent; nothing if nothing is."""
    share = min(max(kills, 0), KILLS_IN_A_ROUND)
    plan = []
    for at, stage in enumerate(STAGES):
        plan += [(stage, signal.SIGKILL)] * ((share + at) // len(STAGES))
        plan += [(stage, number) for number in polite if stage is ASKED_TO_STOP[number]]
    return plan


def main() -> None:
    """Spread chaos from the command line; the exit code is 1 if a single bit was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="SIGKILLs that must hit a training")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the signals")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        outcome = spread_chaos(Path(folder), arguments.kills, arguments.seed, lambda line: print(line, flush=True))
    for (stage, name), hits in sorted(outcome.hits().items()):
        print(f"{name} in {stage}: {hits}")
    print("\n".join(outcome.differing) or "every file is the one of the undisturbed run, bit for bit")
    sys.exit(1 if outcome.differing else 0)


if __name__ == "__main__":
    main()
