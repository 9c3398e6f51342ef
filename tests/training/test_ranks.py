"""Several processes train what one would: the same gradient, the same curve, one set of files."""

import json
import multiprocessing

import numpy as np
import pytest
import torch
from torch import nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.training import CheckpointFolder, ranks
from tests.services import free_port
from tests.training import digits_on_ranks
from tests.training.digits_on_ranks import NEVER, SECONDS_TO_WAIT

PROCESSES = multiprocessing.get_context("forkserver")
EPOCHS = 2
TOLERANCE = 1e-12
"""Of double precision: parts of a batch are added up in another order, and that is all."""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What one process has found."""
    folder = tmp_path_factory.mktemp("alone")
    digits_on_ranks.main(folder, NEVER, EPOCHS)
    return folder


@pytest.fixture(scope="module")
def several(tmp_path_factory, fork_server):
    """What three processes have found, which do not divide a batch of 128 equally."""
    folder = tmp_path_factory.mktemp("several")
    meeting = {"WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    running = []
    for number in map(str, range(3)):
        environment = {**meeting, "RANK": number, "LOCAL_RANK": number}
        arguments = (environment, folder, NEVER, EPOCHS)
        # What waits for one that has failed ends with this process.
        running.append(PROCESSES.Process(target=digits_on_ranks.as_rank, args=arguments, daemon=True))
        running[-1].start()
    for process in running:
        process.join(SECONDS_TO_WAIT)
        assert process.exitcode == 0
    return folder


def losses(folder, stage):
    return [row["loss"] for row in json.loads((folder / "histories.json").read_text())[stage]]


@pytest.mark.parametrize("stage", ["pre-training", "fine-tuning"])
def test_several_processes_train_what_one_does_and_leave_one_checkpoint(alone, several, stage):
    expected = losses(alone, stage)
    assert len(expected) == EPOCHS and expected[-1] < expected[0]
    np.testing.assert_allclose(losses(several, stage), expected, atol=TOLERANCE, rtol=0)
    assert [path.suffix for path in (several / stage).iterdir()] == [".safetensors"]
    one, more = (CheckpointFolder(folder / stage, NEVER).load() for folder in (alone, several))
    assert one.tensors.keys() == more.tensors.keys()
    for name in one.tensors:
        torch.testing.assert_close(more.tensors[name], one.tensors[name], rtol=0, atol=TOLERANCE)


def test_a_batch_with_less_than_an_image_for_each_is_refused(monkeypatch):
    monkeypatch.setattr(ranks, "world_size", lambda: 129)
    with pytest.raises(InputError, match="`batch_size` 128 has less than one image for each of 129 processes: start"):
        ranks.own_part(128)


def test_one_device_by_its_index_is_not_several(monkeypatch):
    monkeypatch.setenv("RANK", "0")
    with pytest.raises(InputError, match="device `cuda:1` is one, and several processes each take their own: use cuda"):
        ranks.join_ranks(torch.device("cuda:1"))


def test_one_process_is_the_whole_of_all_ranks():
    part = torch.rand(3, 2)
    assert ranks.world_size() == 1 and ranks.rank() == 0
    assert ranks.gather(part, 3) is part
    assert ranks.own_part(7) == slice(0, 7)
    assert ranks.any_rank(True) and not ranks.any_rank(False)
    module = nn.Linear(2, 2)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    ranks.share_state(module)
    ranks.sum_gradients(module)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


@pytest.mark.parametrize(
    ("world", "batch", "parts"), [(2, 8, [(0, 4), (4, 8)]), (4, 10, [(0, 2), (2, 5), (5, 7), (7, 10)])]
)
def test_ranks_share_a_batch_without_gap_or_overlap(monkeypatch, world, batch, parts):
    monkeypatch.setattr(ranks, "world_size", lambda: world)
    found = []
    for number in range(world):
        monkeypatch.setattr(ranks, "rank", lambda number=number: number)
        found.append(ranks.own_part(batch))
    assert found == [slice(*part) for part in parts]
