"""Kedro-Viz by its plain command, in a browser."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from deephash_pipeline.pipeline_registry import STAGES, register_pipelines
from tests.services import dumped, free_port, in_a_browser


@pytest.fixture
def address(here):
    """Where Kedro-Viz listens."""
    # It takes none above 49151.
    port = next(port for port in iter(free_port, None) if port <= 49151)
    kedro = [sys.executable, "-m", "kedro", "viz", "run", "--no-browser", f"--port={port}"]
    with subprocess.Popen(kedro, cwd=here, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        yield f"http://127.0.0.1:{port}"
        os.killpg(process.pid, signal.SIGTERM)


def answer(url, seconds=300):
    """What an address says, as soon as somebody listens."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=seconds) as response:
                return json.load(response)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


@pytest.mark.complete
@in_a_browser
def test_the_plain_command_opens_on_the_eight_stages_and_has_all_pipelines(address, tmp_path):
    main = answer(f"{address}/api/main")
    children = main["modular_pipelines"]["__root__"]["children"]
    assert {child["id"] for child in children if child["type"] == "modularPipeline"} == set(STAGES)
    assert {pipeline["id"] for pipeline in main["pipelines"]} == set(register_pipelines())
    # Another one is laid out when it is asked for, with the layers of its datasets.
    other = answer(f"{address}/api/pipelines/descriptor_extraction")
    assert other["selected_pipeline"] == "descriptor_extraction"
    assert other["layers"] == ["intermediate", "feature"]
    shown = dumped(f"{address}/", tmp_path)
    drawn = shown.partition('id="nodes"')[2] or shown
    assert all(stage in drawn for stage in STAGES)
    assert "deephash.b32.codes" not in drawn
