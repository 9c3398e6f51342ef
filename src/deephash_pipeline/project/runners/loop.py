"""The loop of a run: starts nodes as there is room for them, calls hooks, and deals with errors and signals."""

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import Any

from kedro.pipeline.node import Node

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import duration
from deephash_pipeline.project.runners.schedule import NodeSchedule
from deephash_pipeline.project.runners.workers import WorkerLost, Workers
from deephash_pipeline.training import StopRequest, TrainingInterrupted

logger = logging.getLogger(__name__)

NODE_HOOKS = ("before_node_run", "after_node_run", "on_node_error")

NODE_ATTEMPTS = 3
"""How often a node is started whose worker is lost."""

SECONDS_BETWEEN_SIGNAL_LOOKS = 0.05
"""How long a signal may wait for a worker that is to hear of it."""

SECONDS_BETWEEN_RUN_LINES = 20.0


class NodesFailed(InputError):
    """Several nodes failed, each with its line above."""


class Loop:
    """One run: starts nodes and takes in what becomes of them.

    Args:
        schedule: which node starts next.
        workers: where nodes run.
        stop: whether somebody has asked for the end.
        hooks: hooks by the names of `NODE_HOOKS`, those of Kedro that belong to where the run was started.
    """

    def __init__(
        self, schedule: NodeSchedule, workers: Workers, stop: StopRequest, hooks: Mapping[str, Callable[..., Any]]
    ) -> None:
        self.schedule, self.workers, self.stop, self.hooks = schedule, workers, stop, hooks
        self.futures: dict[Future[None], Node] = {}
        self.errors: dict[Node, BaseException] = {}
        self.interrupted: list[TrainingInterrupted] = []
        self.stopping = False
        self.began = self.said = time.monotonic()

    def run(self) -> None:
        """Run all nodes that can run.

        Raises:
            TrainingInterrupted: somebody has asked to stop.
            NodesFailed: several nodes have failed; the error of one, if it was one.
        """
        while True:
            self._start_nodes()
            if not self.futures:
                break
            done, _ = wait(self.futures, timeout=SECONDS_BETWEEN_SIGNAL_LOOKS, return_when=FIRST_COMPLETED)
            if self.stop and not self.stopping:
                self._stop()
            ended = [(self.futures.pop(future), future.exception()) for future in done]
            for node, error in ended:
                self._note(node, error)
            if self.workers.in_background:
                # Hooks take time, in which the next nodes run already.
                self._start_nodes()
            for node, error in ended:
                if error is None:
                    self.hooks["after_node_run"](node=node, outputs={})
                elif node in self.errors:
                    self.hooks["on_node_error"](node=node, error=error)
            self._say_how_far()
        self._raise_what_happened()

    def _start_nodes(self) -> None:
        while not self.stopping and not self.stop and (following := self.schedule.start_next()) is not None:
            node, needs = following
            if self.schedule.attempts[node] == 1:
                self.hooks["before_node_run"](node=node)
            self.futures[self.workers.submit(node, needs)] = node

    def _note(self, node: Node, error: BaseException | None) -> None:
        is_lost = isinstance(error, WorkerLost)
        if error is None:
            self.schedule.finish(node)
        elif is_lost and not self.stopping and self.schedule.attempts[node] < NODE_ATTEMPTS:
            logger.warning("%s; it is run again", error)
            self.schedule.put_back(node)
        else:
            self.schedule.fail(node)
            if isinstance(error, TrainingInterrupted):
                # In this process it is the training that hears the signal.
                self.interrupted.append(error)
                self._stop()
            elif not (is_lost and self.stopping):
                self.errors[node] = error
                if self.schedule.stop_on_error:
                    self._stop()
                elif self.futures:
                    logger.warning("%s failed; what does not need it goes on", node.name)

    def _stop(self) -> None:
        if not self.stopping:
            self.stopping = True
            self.workers.ask_to_stop()

    def _say_how_far(self) -> None:
        now = time.monotonic()
        if now - self.said >= SECONDS_BETWEEN_RUN_LINES:
            self.said = now
            running = "; at work: " * bool(self.futures) + ", ".join(node.name for node in self.futures.values())
            done, all_nodes = len(self.schedule.done), len(self.schedule.nodes)
            logger.info("%d of %d nodes after %s%s", done, all_nodes, duration(now - self.began), running)

    def _raise_what_happened(self) -> None:
        number = self.stop.signal_number
        if number is not None or (self.interrupted and not self.errors):
            self._say_what_failed()
            raise _interruption(self.interrupted, number)
        if not self.errors:
            return
        skipped = f", {len(self.schedule.skipped)} that need them were not run" if self.schedule.skipped else ""
        if len(self.errors) == 1:
            node, error = next(iter(self.errors.items()))
            if skipped:
                logger.error("%s failed%s", node.name, skipped.replace("them", "it"))
            raise error
        self._say_what_failed()
        raise NodesFailed(f"{len(self.errors)} nodes failed{skipped}: {', '.join(node.name for node in self.errors)}")

    def _say_what_failed(self) -> None:
        for node, error in self.errors.items():
            logger.error("%s failed: %s", node.name, error, exc_info=None if isinstance(error, InputError) else error)


def _interruption(interrupted: list[TrainingInterrupted], number: int | None) -> TrainingInterrupted:
    """Make one error of those of all trainings, with the signal that this process has heard."""
    if len(interrupted) == 1:
        message = str(interrupted[0])
    else:
        places = [str(error).partition(";")[0].replace(": interrupted", "") for error in interrupted]
        message = f"interrupted: {', '.join(places) or 'no training was at work'}; the same command goes on from there"
    return TrainingInterrupted(message, number or interrupted[0].args[1])
