"""Threads of OpenMP sleep while they wait, in commands and in runs, unless the user says otherwise."""

import os
import subprocess
import sys

import pytest

SAYS = "; import os, sys; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
COMMAND = "import sys; sys.argv = ['deephash-pipeline', '--version']; from deephash_pipeline.__main__ import main\n"


@pytest.mark.parametrize(
    "begun", ["import deephash_pipeline.settings", COMMAND + "try: main()\nexcept SystemExit: pass\npass"]
)
@pytest.mark.parametrize("given", ["", "ACTIVE"])
def test_it_is_said_before_openmp_is_loaded(begun, given):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {"OMP_WAIT_POLICY": given} if given else {}
    done = subprocess.run(
        [sys.executable, "-c", begun + SAYS], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == f"{given or 'PASSIVE'} False"
