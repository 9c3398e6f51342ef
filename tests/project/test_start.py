"""What commands import that only list names, and what they need."""

import os
import subprocess
import sys

HEAVY = ("torch", "sklearn", "scipy", "pandas", "numba")
LISTING = f"""
import sys
from kedro.framework.startup import bootstrap_project
from kedro.framework.project import pipelines
bootstrap_project({{}})
from deephash_pipeline.cli.main import cli
assert "full" in pipelines and len(pipelines) == 24 and "run" in cli.list_commands(None)
print(*(name for name in {HEAVY} if name in sys.modules))
"""


def test_names_of_pipelines_and_commands_are_known_without_libraries(pytestconfig):
    code = LISTING.format(repr(str(pytestconfig.rootpath)))
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert listed.stdout.split() == []


def test_outside_a_project_a_run_has_help_and_broken_configuration_of_logging_is_named(tmp_path):
    (tmp_path / "logging.yml").write_text("version: [\n")
    broken = {**os.environ, "KEDRO_LOGGING_CONFIG": "logging.yml"}
    command = [sys.executable, "-m", "deephash_pipeline", "run", "--help"]
    helped, refused = (
        subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        for env in (os.environ, broken)
    )
    assert helped.returncode == 0 and "--workers" in helped.stdout, helped.stderr
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: logging.yml ") and refused.stderr.count("\n") == 1, refused.stderr
