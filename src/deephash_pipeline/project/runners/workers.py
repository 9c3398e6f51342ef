"""Where nodes run: what a runner needs to know of it, and the simplest kind, this process."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias

from kedro.pipeline.node import Node
from kedro.runner.task import Task

from deephash_pipeline.common.devices import threads
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.progress import Steps, reported_to
from deephash_pipeline.project.freshness.graph import Catalog
from deephash_pipeline.project.runners.needs import Needs

Receive: TypeAlias = Callable[[Node, Steps], None]
"""Is told how far a node has come, in any thread."""


class WorkerLost(InputError):
    """A worker ended before its node did: its process was killed, or its machine is gone."""


class Workers(ABC):
    """Places where nodes run. A runner sends a node only when its inputs are stored."""

    @abstractmethod
    def submit(self, node: Node, needs: Needs) -> Future[None]:
        """Have a node run.

        Returns:
            Done when the node is; with its error if it fails, `WorkerLost` if it may be sent again.
        """

    def ask_to_stop(self) -> None:  # noqa: B027 - where nodes run in this process, they hear signals themselves
        """Have trainings store what they have and end, and end everything else."""

    def close(self) -> None:  # noqa: B027
        """End what is still at work."""


class ThisProcess(Workers):
    """Runs a node at once, where the run was started, with all hooks.

    Args:
        catalog: of the run.
        hook_manager: of the run.
        run_id: of Kedro's session.
        receive: gets how far a node has come.
    """

    def __init__(self, catalog: Catalog, hook_manager: Any, run_id: str | None, receive: Receive) -> None:
        self._catalog, self._hook_manager, self._run_id, self._receive = catalog, hook_manager, run_id, receive

    def submit(self, node: Node, needs: Needs) -> Future[None]:
        """Run a node."""
        future: Future[None] = Future()
        try:
            with threads(needs.threads), reported_to(partial(self._receive, node)):
                Task(node, self._catalog, False, hook_manager=self._hook_manager, run_id=self._run_id).execute()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(None)
        return future
