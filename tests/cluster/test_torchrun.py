"""One training on several machines: torchrun's agents, each in a process group of its own, as a machine is."""

import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from deephash_pipeline import ImageHasher
from deephash_pipeline.training import CheckpointFolder
from tests.cluster.local_cluster import kill_with_children
from tests.services import free_port
from tests.training import digits_on_ranks
from tests.training.digits_on_ranks import NEVER, SECONDS_TO_WAIT

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = re.compile(r"```python\n# train_hasher\.py\n(.*?)```", re.DOTALL)
EPOCHS = 12

pytestmark = pytest.mark.cluster


def machine(port, *arguments, host):
    """An agent with one process; the host keeps account of who is there."""
    # A lost machine is missed after three seconds, and two more are waited for others.
    settings = f"keep_alive_interval=1,last_call_timeout=2,is_host={str(host).lower()}"
    meeting = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", f"--rdzv-conf={settings}"]
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--nnodes=1:2", "--nproc-per-node=1", "--max-restarts=3"),
            *("--local-addr=127.0.0.1", *meeting, *map(str, arguments)),
        ],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@contextmanager
def machines(*arguments):
    """Two of them, which end with the test at the latest."""
    port = free_port()
    agents = [machine(port, *arguments, host=host) for host in (True, False)]
    try:
        yield agents
    finally:
        for agent in agents:
            agent.kill()
            agent.wait()


def test_a_lost_machine_costs_the_steps_since_the_last_checkpoint(tmp_path):
    alone, together = tmp_path / "alone", tmp_path / "together"
    for folder in (alone, together):
        folder.mkdir()
    # A checkpoint at each of its 36 steps.
    training = ("-m", digits_on_ranks.__name__, together, 0, EPOCHS)
    with machines(*training) as agents:
        end = time.monotonic() + SECONDS_TO_WAIT
        while not list((together / "pre-training").glob("checkpoint-*")) and agents[0].poll() is None:
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.05)
        assert agents[0].poll() is None, agents[0].communicate()[0]
        kill_with_children(agents[1].pid)
        state = CheckpointFolder(together / "pre-training", NEVER).load()
        assert state is not None and not state.progress["finished"]
        output, _ = agents[0].communicate(timeout=SECONDS_TO_WAIT)
        assert agents[0].returncode == 0, output
    digits_on_ranks.main(alone, NEVER, EPOCHS)
    one, several = (json.loads((folder / "histories.json").read_text()) for folder in (alone, together))
    for stage in one:
        assert [row["epoch"] for row in several[stage]] == list(range(1, EPOCHS + 1))
        # Of double precision, as in tests/training/test_ranks.
        np.testing.assert_allclose(
            [row["loss"] for row in several[stage]], [row["loss"] for row in one[stage]], atol=1e-12, rtol=0
        )


def test_the_script_of_the_page_on_scale_learns_a_hasher_on_two_machines(tmp_path):
    draws = np.random.default_rng(0)
    for name, brightness in (("dark", 60), ("light", 190)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(80):
            pixels = draws.integers(brightness - 50, brightness + 50, (32, 32, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{number}.png")
    found = SCRIPT.search((ROOT / "docs/scale.md").read_text())
    assert found
    script = tmp_path / "train_hasher.py"
    script.write_text(found[1].replace("/shared", str(tmp_path)))
    with machines(script) as agents:
        for agent in agents:
            output, _ = agent.communicate(timeout=SECONDS_TO_WAIT)
            assert agent.returncode == 0, output
    hasher = ImageHasher.load(tmp_path / "hasher.safetensors")
    codes = hasher.encode([tmp_path / "photos" / name / "0.png" for name in ("dark", "light")])
    assert codes.shape == (2, 6) and (codes[0] != codes[1]).any()
    stages = sorted(folder.name for folder in (tmp_path / "checkpoints").iterdir())
    assert stages == ["fine_tuning", "hash_layer_init", "pretraining"]
