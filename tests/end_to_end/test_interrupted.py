"""Ctrl-C before any node runs: the shell's exit code, one line, and no lock left behind."""

import os
import signal
import subprocess
import sys
import time

from deephash_pipeline.provenance.lock import RunLock


def test_interrupted_as_it_begins_a_run_leaves_no_lock(new_project):
    project = new_project("interrupted")
    lock = RunLock(project / "data" / "02_intermediate" / "digits")
    command = [sys.executable, "-m", "kedro", "run", "--pipelines=data_ingestion"]
    run = subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    patience = time.monotonic() + 300
    while not lock.is_left and run.poll() is None and time.monotonic() < patience:
        time.sleep(0.005)
    os.kill(run.pid, signal.SIGINT)
    output = run.communicate(timeout=120)[0]
    assert run.returncode == 128 + signal.SIGINT, output
    assert output.splitlines()[-1].startswith("Error: interrupted")
    assert not lock.is_left
