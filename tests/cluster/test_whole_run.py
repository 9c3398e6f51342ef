"""All stages at one code length on a Ray cluster: the files of one process, bit for bit, also if a machine is lost.

The run is ``full_at_32_bits`` on the digits with all methods and few steps, in sessions of one process: then manifests
name the same command, and are equal too.
"""

import logging
import sys
import threading
import time

import pytest
from kedro.framework.session import KedroSession
from kedro.framework.startup import bootstrap_project

from deephash_pipeline.project.runners import RayRunner, SequentialRunner
from tests.cluster.local_cluster import lose_node, work_on
from tests.conftest import nested_parameters
from tests.end_to_end.killed_runs import PARAMETERS, made

pytestmark = pytest.mark.cluster
PIPELINE = "full_at_32_bits"
IN_THE_MIDDLE = ".fine_tune_and_encode"
"""How the nodes are called that need what others have made, and whose codes are still to be evaluated."""


def run(project, runner):
    """Make everything; returns seconds."""
    began = time.monotonic()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        bootstrap_project(project)
        with KedroSession.create(project, runtime_params=nested_parameters(PARAMETERS)) as session:
            session.run(pipeline_names=[PIPELINE], runner=runner)
    return time.monotonic() - began


@pytest.fixture(scope="module")
def in_one_process(new_project):
    """What one process makes, one node after the other, and how many seconds it takes."""
    project = new_project("sequential")
    seconds = run(project, SequentialRunner())
    return made(project), seconds


def test_all_stages_on_a_cluster_make_the_files_of_one_process(cluster, new_project, in_one_process):
    expected, seconds = in_one_process
    project = new_project("cluster")
    on_cluster = run(project, RayRunner(address=cluster.address))
    sys.stdout.write(f"\n{seconds:.0f} s in one process, {on_cluster:.0f} s on the cluster\n")
    assert made(project) == expected
    assert any(name.endswith("report.html.provenance.json") for name in expected)


def test_a_machine_that_is_lost_in_a_training_changes_none_of_them(cluster, new_project, in_one_process, caplog):
    project = new_project("lost_machine")
    lost = []
    ended = threading.Event()

    def lose_a_machine():
        while not lost and not ended.wait(0.01):
            for node in cluster.machines:
                lost.extend(name for name in work_on(node) if name.endswith(IN_THE_MIDDLE))
                if lost:
                    lose_node(cluster, node)
                    break

    killer = threading.Thread(target=lose_a_machine, daemon=True)
    killer.start()
    with caplog.at_level(logging.WARNING):
        run(project, RayRunner(address=cluster.address))
    ended.set()
    killer.join()
    assert [f"{name}: its worker was lost" in caplog.text for name in lost] == [True]
    assert made(project) == in_one_process[0]
