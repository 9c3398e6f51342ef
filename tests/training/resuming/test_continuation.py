"""Training survives being killed at any moment: it ends with the weights and the history it would have had."""

import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from deephash_pipeline.losses import DFH, DSDH, CIBHash, ExponentiatedLoss, GreedyHash, HashNet, SimilarityBits
from deephash_pipeline.networks import (
    ClassificationHead,
    HashLayer,
    HashLayerParameters,
    HashNetwork,
    HashSoftmaxNetwork,
    build_hash_layer,
    initialise,
)
from deephash_pipeline.training import (
    ArrayInputs,
    CheckpointFolder,
    CrossEntropy,
    LabelledInputs,
    TrainingDiverged,
    TrainingInterrupted,
    TrainingRun,
    train,
)
from tests.training.resuming.small_fine_tuning import (
    CPU,
    CopiedAfterSaving,
    Killed,
    KilledAfterSaving,
    exactly,
    fine_tune,
    hash_network,
    images,
    learning,
    parameters,
    sha256,
    stored,
    uninterrupted,
)

STEPS_PER_EPOCH = 3

VARIANTS = [
    learning(schedule="one_cycle"),
    learning(schedule="plateau"),
    learning(schedule="one_cycle", chunk_size=5),
    learning(schedule="plateau", momentum=0.0, sampler="random_skip", random_skip_maximum=5),
    learning(schedule="one_cycle", precision="bfloat16"),
    # The loss hardly falls: the rate drops until training counts as converged, before the last epoch.
    learning(schedule="plateau", learning_rate=1e-4, plateau_patience=1, plateau_drops=2, epochs=12),
]


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_a_training_killed_after_any_step_ends_bit_for_bit_as_if_it_had_not_been(tmp_path, changes):
    weights, history = uninterrupted(changes)
    copies = tmp_path / "copies"
    assert fine_tune(CopiedAfterSaving(tmp_path / "whole", copies), **dict(changes)) == (weights, history)
    folders = sorted(copies.iterdir())
    assert len(folders) == len(history) * STEPS_PER_EPOCH + 1
    for folder in folders:
        resumed_weights, resumed_history = fine_tune(CheckpointFolder(folder, 30), **dict(changes))
        assert resumed_weights == weights
        assert exactly(resumed_history) == exactly(history)


def greedy_network():
    """With the softmax layer that GreedyHash learns along."""
    network = hash_network()
    classifier = ClassificationHead("code", 6, 3)
    initialise(classifier, 3)
    return HashNetwork(network.trunk, network.hash_layer, classifier)


def divided_network():
    """With DNNH's hash layer."""
    layer = build_hash_layer(17, 6, HashLayerParameters(bias=True, features_per_bit=4), 2)
    return HashNetwork(hash_network().trunk, layer)


def frozen_network():
    """With a trunk that is not trained."""
    network = hash_network()
    return HashNetwork(network.trunk, network.hash_layer, frozen_trunk=True, gives_z=True)


def similarity_bits():
    """With features of every image."""
    return SimilarityBits(HashNet(), torch.randn(50, 4, generator=torch.Generator().manual_seed(4)), 2, 3.0)


RIVALS = {
    "a loss with a layer of its own": (greedy_network, GreedyHash),
    "bits that keep similarities beside a loss that follows progress": (hash_network, similarity_bits),
    "a divided hash layer": (divided_network, HashNet),
    "a loss with codes of its own": (hash_network, lambda: DSDH(6, images()[1], quantisation_weight=0.5)),
    "a loss with centres of its own": (hash_network, lambda: DFH(6, images()[1])),
    "a frozen trunk and two views": (frozen_network, CIBHash),
}


@pytest.mark.parametrize("rival", RIVALS)
def test_rivals_killed_after_any_step_end_bit_for_bit_as_if_they_had_not_been(tmp_path, rival):
    network, loss = RIVALS[rival]
    copies = tmp_path / "copies"
    weights, history = fine_tune(network=network(), objective=loss())
    assert fine_tune(CopiedAfterSaving(tmp_path / "whole", copies), loss(), network()) == (weights, history)
    folders = sorted(copies.iterdir())
    assert len(folders) == 3 * STEPS_PER_EPOCH + 1
    for folder in folders:
        resumed_weights, resumed_history = fine_tune(CheckpointFolder(folder, 30), loss(), network())
        assert resumed_weights == weights
        assert exactly(resumed_history) == exactly(history)


def test_the_plateau_variant_drops_its_rate_and_converges_early():
    _, history = uninterrupted(VARIANTS[-1])
    rates = [row["learning_rate"] for row in history]
    assert len(rates) < 12
    assert rates[-1] < rates[0] / 50


@pytest.mark.parametrize("schedule", ["plateau"])
def test_a_training_killed_again_and_again_ends_bit_for_bit_as_if_it_had_not_been(tmp_path, schedule):
    kills = 0
    while True:
        try:
            result = fine_tune(KilledAfterSaving(tmp_path, saves=1 + kills % 2), schedule=schedule)
            break
        except Killed:
            kills += 1
    assert kills >= 6
    assert stored(tmp_path)["progress"]["steps"] == 3 * STEPS_PER_EPOCH
    weights, history = uninterrupted(learning(schedule=schedule))
    assert result[0] == weights
    assert exactly(result[1]) == exactly(history)


def test_a_training_killed_at_any_file_operation_ends_bit_for_bit_as_if_it_had_not_been(tmp_path, monkeypatch):
    folder, copies = tmp_path / "whole", tmp_path / "copies"

    def copying(operation):
        def operate(*arguments, **options):
            result = operation(*arguments, **options)
            if folder.exists():
                shutil.copytree(folder, copies / f"{len(list(copies.glob('*'))):04d}")
            return result

        return operate

    changes = {"epochs": 1, "schedule": "one_cycle"}
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", copying(os.fsync))
        patched.setattr(Path, "replace", copying(Path.replace))
        patched.setattr(Path, "unlink", copying(Path.unlink))
        fine_tune(CheckpointFolder(folder, 0), **changes)
    weights, history = uninterrupted(learning(**changes))
    found = sorted(copies.iterdir())
    assert len(found) > 15
    for copy in found:
        assert fine_tune(CheckpointFolder(copy, 0), **changes) == (weights, history)
        assert len(list(copy.iterdir())) == 2, "two checkpoints, and nothing half written"


def test_stage_2_goes_on_bit_for_bit(tmp_path):
    z = np.random.default_rng(0).normal(size=(50, 9)).astype(np.float32)
    labels = images()[1]

    def initialise_hash_layer(checkpoints=None):
        network = HashSoftmaxNetwork(HashLayer(9, 6, HashLayerParameters(), 3), 3)
        initialise(network.softmax, 4)
        settings = parameters(schedule="one_cycle")
        training_set = LabelledInputs(ArrayInputs(z, CPU), labels)
        run = TrainingRun("stage 2", 7, checkpoints=checkpoints)
        history = train(network, CrossEntropy(), training_set, settings, run)
        return sha256(network), history

    with pytest.raises(Killed):
        initialise_hash_layer(KilledAfterSaving(tmp_path, saves=4))
    assert stored(tmp_path)["progress"]["epoch"] == 2
    assert initialise_hash_layer(CheckpointFolder(tmp_path, 0)) == initialise_hash_layer()


def test_a_damaged_checkpoint_costs_a_step_and_not_a_bit(tmp_path, caplog):
    with pytest.raises(Killed):
        fine_tune(KilledAfterSaving(tmp_path, saves=5))
    max(tmp_path.glob("*.safetensors")).write_bytes(b"garbage")
    assert fine_tune(CheckpointFolder(tmp_path, 0)) == uninterrupted()
    assert any(record.levelname == "WARNING" for record in caplog.records)


# A training whose loss ceases to be finite.


class Diverging(nn.Module):
    """Not a number as soon as the weights have been trained for an epoch, whichever process looks at them."""

    def __init__(self, network):
        super().__init__()
        # In a list, so as not to be part of this module.
        self.network, self.begun = [network], network.trunk[6].bias.detach().clone()

    def forward(self, u, labels):
        loss = ExponentiatedLoss(loss_scale="unit")(u, labels)
        moved = (self.network[0].trunk[6].bias - self.begun).abs().sum()
        return loss * torch.where(moved > 0.7, torch.nan, 1.0)


def diverge(checkpoints):
    network = hash_network()
    with pytest.raises(TrainingDiverged) as caught:
        fine_tune(checkpoints, Diverging(network), network, epochs=20)
    return sha256(network), str(caught.value), caught.value.weights["trunk.6.bias"].tolist()


def test_a_training_that_diverges_does_so_after_a_kill_with_the_same_last_good_weights(tmp_path):
    weights, message, bias = diverge(None)
    copies = tmp_path / "copies"
    assert diverge(CopiedAfterSaving(tmp_path / "whole", copies)) == (weights, message, bias)
    for folder in sorted(copies.iterdir())[-5:]:
        assert stored(folder)["progress"]["epoch"] > 1
        assert diverge(CheckpointFolder(folder, 30)) == (weights, message, bias)


# Checkpoints and what is trained.


def test_training_without_checkpoints_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fine_tune(epochs=1)
    assert list(tmp_path.iterdir()) == []


def test_a_stop_request_saves_after_the_step_and_the_next_process_goes_on(tmp_path):
    class Stopping(ExponentiatedLoss):
        steps = 0

        def forward(self, u, labels):
            self.steps += 1
            if self.steps == 5:
                signal.raise_signal(signal.SIGTERM)
            return super().forward(u, labels)

    with pytest.raises(TrainingInterrupted, match="interrupted in epoch 2 after step 2; the same command goes on"):
        fine_tune(CheckpointFolder(tmp_path, 30), Stopping(loss_scale="unit", balance_pairs=True))
    assert stored(tmp_path)["progress"]["steps"] == 5
    assert fine_tune(CheckpointFolder(tmp_path, 30)) == uninterrupted()
