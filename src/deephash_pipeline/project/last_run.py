"""The state of the last run, for Kedro-Viz, whose own hook notes sequential runs of all pipelines alone."""

import hashlib
import json
import traceback
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.pipeline.node import Node

from deephash_pipeline.common.stores import write_whole

EVENTS_FILE = Path(".viz", "kedro_pipeline_events.json")
"""Where Kedro-Viz looks, below the project."""


class LastRun:
    """Writes which nodes a run has run, how long each took, and what failed."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._started: dict[str, float] = {}
        self._file = EVENTS_FILE

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any]) -> None:
        """Begin anew."""
        self._file = Path(run_params["project_path"]) / EVENTS_FILE
        self._events, self._started = [_event("before_pipeline_run")], {}

    @hook_impl
    def before_node_run(self, node: Node) -> None:
        """Note when a node begins."""
        self._started[node.name] = perf_counter()

    @hook_impl
    def after_node_run(self, node: Node) -> None:
        """Note that a node has ended, and how long it took."""
        seconds = perf_counter() - self._started.get(node.name, perf_counter())
        self._events.append(_event("after_node_run", node, duration=seconds, status="success"))

    @hook_impl
    def on_node_error(self, error: Exception, node: Node) -> None:
        """Note which node has failed."""
        self._events.append(_event("on_node_error", node, **_failure(error)))

    @hook_impl
    def after_pipeline_run(self) -> None:
        """Write the state of a run that has ended."""
        self._write(_event("after_pipeline_run"))

    @hook_impl
    def on_pipeline_error(self, error: Exception) -> None:
        """Write the state of a run that has failed."""
        self._write(_event("on_pipeline_error", **_failure(error)))

    def _write(self, last: dict[str, Any]) -> None:
        self._file.parent.mkdir(exist_ok=True)
        write_whole(self._file, json.dumps([*self._events, last]).encode())


def _event(name: str, node: Node | None = None, **facts: Any) -> dict[str, Any]:
    # Kedro-Viz's own number of a node, without its import.
    about = {} if node is None else {"node": node.name, "node_id": hashlib.sha1(str(node).encode()).hexdigest()[:8]}
    return {"event": name, "timestamp": datetime.now(UTC).isoformat(), **about, **facts}


def _failure(error: Exception) -> dict[str, Any]:
    return {"error": f"{type(error).__name__}: {error}", "traceback": "".join(traceback.format_exception(error))}
