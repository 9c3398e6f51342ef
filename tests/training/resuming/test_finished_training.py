"""A finished training is known as finished, and gives its result again."""

import logging

import pytest
from torch import nn

from deephash_pipeline.training import CheckpointFolder
from tests.training.resuming.small_fine_tuning import (
    Killed,
    KilledAfterSaving,
    exactly,
    fine_tune,
    stored,
    uninterrupted,
)


class NeverAsked(nn.Module):
    """An objective that nobody is to ask."""

    def forward(self, outputs, labels):
        raise AssertionError("a step was taken")


def test_a_finished_training_gives_its_result_again_without_a_step(tmp_path, caplog):
    first = fine_tune(CheckpointFolder(tmp_path, 30))
    with caplog.at_level(logging.INFO):
        weights, history = fine_tune(CheckpointFolder(tmp_path, 30), NeverAsked())
    assert (weights, exactly(history)) == (first[0], exactly(first[1]))
    assert any("finished before" in record.getMessage() for record in caplog.records)


def test_a_training_whose_steps_are_done_is_finished_only_after_what_follows_the_last(tmp_path):
    with pytest.raises(Killed):
        fine_tune(KilledAfterSaving(tmp_path, saves=9))
    progress = stored(tmp_path)["progress"]
    assert (progress["steps"], progress["finished"], len(progress["history"])) == (9, False, 2)
    assert fine_tune(CheckpointFolder(tmp_path, 30), NeverAsked()) == uninterrupted()
    assert stored(tmp_path)["progress"]["finished"]
