"""Kedro-Viz reads the state of the last run, whatever it has run and with whichever runner."""

import pytest
from kedro.pipeline import Node
from kedro_viz.api.rest.responses import run_events
from kedro_viz.integrations.kedro.hooks_utils import hash_node

from deephash_pipeline.project.last_run import EVENTS_FILE, LastRun

FIRST, SECOND = (Node(lambda: 1, None, name, name=name, namespace="itq.b12") for name in ("fit", "measure"))


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setattr(run_events, "PIPELINE_EVENT_FULL_PATH", tmp_path / EVENTS_FILE)
    hook = LastRun()

    def run(failing=None):
        hook.before_pipeline_run(run_params={"project_path": str(tmp_path), "pipeline_names": ["evaluation"]})
        for node in (FIRST, SECOND):
            hook.before_node_run(node=node)
            if node is failing:
                hook.on_node_error(error=ValueError("no labels"), node=node)
                hook.on_pipeline_error(error=ValueError("no labels"))
                break
            hook.after_node_run(node=node)
        else:
            hook.after_pipeline_run()
        return run_events.get_run_status_response()

    return run


def test_every_node_of_a_run_has_its_state_and_its_seconds(state):
    found = state()
    assert found.pipeline.status == "success"
    assert found.nodes.keys() == {hash_node(FIRST), hash_node(SECOND)}
    assert all(node.status == "success" and node.duration >= 0 for node in found.nodes.values())


def test_a_failed_node_has_its_error_and_the_next_run_begins_anew(state):
    found = state(failing=SECOND)
    assert (found.pipeline.status, found.pipeline.error.message) == ("failed", "ValueError: no labels")
    assert found.nodes[hash_node(SECOND)].error.message == "ValueError: no labels"
    assert found.nodes[hash_node(FIRST)].status == "success"
    assert state().pipeline.error is None
