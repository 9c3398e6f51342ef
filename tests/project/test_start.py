"""What commands import that only list names."""

import subprocess
import sys

HEAVY = ("torch", "sklearn", "scipy", "pandas", "numba")
LISTING = f"""
import sys
from kedro.framework.startup import bootstrap_project
from kedro.framework.project import pipelines
bootstrap_project({{}})
from deephash_pipeline.cli.main import cli
assert "full" in pipelines and len(pipelines) == 25 and "run" in cli.lazy_subcommands
print(*(name for name in {HEAVY} if name in sys.modules))
"""


def test_names_of_pipelines_and_commands_are_known_without_libraries(pytestconfig):
    code = LISTING.format(repr(str(pytestconfig.rootpath)))
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert listed.stdout.split() == []
