"""Training survives being killed at any moment: it ends with the weights and the history it would have had."""

import hashlib
import json
import logging
import os
import shutil
import signal
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from deephash_pipeline.errors import InputError
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.losses import ExponentiatedLoss, ExponentiatedLossParameters
from deephash_pipeline.losses.greedy_hash import GreedyHash, GreedyHashParameters
from deephash_pipeline.losses.hashnet import HashNet, HashNetParameters
from deephash_pipeline.networks import (
    HashLayer,
    HashLayerParameters,
    HashNetwork,
    HashSoftmaxNetwork,
    SideClassifier,
    build_hash_layer,
    initialise,
)
from deephash_pipeline.training import (
    ArrayInputs,
    CheckpointFolder,
    CrossEntropy,
    TrainingDiverged,
    TrainingInterrupted,
    TrainingParameters,
    outputs_in_blocks,
    train,
)
from deephash_pipeline.training import resuming as resuming_module

CPU = torch.device("cpu")
STATISTICS = {"mean": [0.5], "standard_deviation": [0.25]}
AUGMENTATION = AugmentationParameters(shift_pixels=1, rotation_degrees=10, scale_range=0.1)
STEPS_PER_EPOCH = 3


def parameters(**changes):
    defaults = {"epochs": 3, "batch_size": 16, "learning_rate": 0.05, "weight_decay": 1e-3}
    return TrainingParameters(**{**defaults, **changes})


def images():
    generator = np.random.default_rng(0)
    labels = np.arange(50) % 3
    pixels = generator.integers(0, 120, (50, 1, 8, 8)) + 60 * labels[:, None, None, None]
    return pixels.astype(np.uint8), labels.astype(np.int64)


def hash_network():
    """What fine-tuning trains, small: convolutions, dropout, a layer and a hash layer with statistics of their own."""
    trunk = nn.Sequential(
        nn.Conv2d(1, 5, 3),
        nn.BatchNorm2d(5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.3),
        nn.Flatten(),
        nn.Linear(45, 17),
        nn.ReLU(),
        nn.Dropout(0.2),
    )
    initialise(trunk, 1)
    return HashNetwork(trunk, HashLayer(17, 6, HashLayerParameters(centring=True, scale=3.0, bias=True), 2))


class Killed(BaseException):
    """Stands for SIGKILL: nothing in the engine may catch it."""


class KilledAfterSaving(CheckpointFolder):
    """A folder behind whose n-th save of this process the process ends."""

    def __init__(self, folder, saves):
        super().__init__(folder, 0)
        self.saves = saves

    def save(self, state):
        super().save(state)
        self.saves -= 1
        if not self.saves:
            raise Killed


class CopiedAfterSaving(CheckpointFolder):
    """A folder of which a copy is kept behind every save."""

    def __init__(self, folder, copies):
        super().__init__(folder, 0)
        self.copies = copies

    def save(self, state):
        super().save(state)
        shutil.copytree(self.folder, self.copies / f"{len(list(self.copies.glob('*'))):04d}")


def fine_tune(checkpoints=None, objective=None, network=None, configuration=None, seed=7, data=None, **changes):
    """Train the hash network; return the SHA-256 of its weights and its history."""
    network = network or hash_network()
    pixels, labels = data or images()
    inputs = ImageInputs(pixels, STATISTICS, CPU, AUGMENTATION)
    plain = ImageInputs(pixels, STATISTICS, CPU)
    history = train(
        network,
        objective or ExponentiatedLoss(ExponentiatedLossParameters(loss_scale="unit", balance_pairs=True)),
        inputs,
        labels,
        parameters(**changes),
        seed,
        CPU,
        "fine_tuning.b6",
        # A figure that any lost bit of any weight or running mean would show in, as NumPy has it.
        after_epoch=lambda: {"mean_square": (outputs_in_blocks(network, plain) ** 2).mean()},
        checkpoints=checkpoints,
        configuration=configuration,
    )
    return sha256(network), history


def sha256(module):
    digest = hashlib.sha256()
    for name, tensor in module.state_dict().items():
        digest.update(name.encode() + tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()


def learning(**changes):
    """Changes of the parameters as what can be kept by `cache`."""
    return tuple(sorted(changes.items()))


@cache
def uninterrupted(changes=()):
    return fine_tune(**dict(changes))


def exactly(history):
    """To the last digit, with the order of columns and the types of numbers."""
    return repr(history)


def stored(folder):
    return json.loads(max(folder.glob("checkpoint-*.json")).read_text())["content"]


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
def test_a_training_killed_behind_any_step_ends_bit_for_bit_as_if_it_had_not_been(tmp_path, changes):
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
    classifier = SideClassifier("code", 6, 3)
    initialise(classifier, 3)
    return HashNetwork(network.trunk, network.hash_layer, classifier)


def divided_network():
    """With DNNH's hash layer."""
    layer = build_hash_layer(17, 6, HashLayerParameters(bias=True, features_per_bit=4), 2)
    return HashNetwork(hash_network().trunk, layer)


RIVALS = {
    "a loss with a layer of its own": (greedy_network, lambda: GreedyHash(GreedyHashParameters())),
    "a loss that follows progress": (hash_network, lambda: HashNet(HashNetParameters())),
    "a divided hash layer": (divided_network, lambda: HashNet(HashNetParameters())),
}


@pytest.mark.parametrize("rival", RIVALS)
def test_rivals_killed_behind_any_step_end_bit_for_bit_as_if_they_had_not_been(tmp_path, rival):
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


@pytest.mark.parametrize("schedule", ["plateau", "one_cycle"])
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
    assert len(found) > 30
    for copy in found:
        assert fine_tune(CheckpointFolder(copy, 0), **changes) == (weights, history)
        assert len(list(copy.iterdir())) == 4, "two checkpoints, and nothing half written"


def test_stage_2_goes_on_bit_for_bit(tmp_path):
    z = np.random.default_rng(0).normal(size=(50, 9)).astype(np.float32)
    labels = images()[1]

    def initialise_hash_layer(checkpoints=None):
        network = HashSoftmaxNetwork(HashLayer(9, 6, HashLayerParameters(), 3), 3)
        initialise(network.softmax, 4)
        settings = parameters(schedule="one_cycle")
        history = train(
            network, CrossEntropy(), ArrayInputs(z, CPU), labels, settings, 7, CPU, "stage 2", checkpoints=checkpoints
        )
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


def test_a_checkpoint_knows_how_far_training_has_come(tmp_path):
    with pytest.raises(Killed):
        fine_tune(KilledAfterSaving(tmp_path, saves=5), schedule="plateau")
    content = stored(tmp_path)
    assert (content["progress"]["epoch"], content["progress"]["step"], content["progress"]["steps"]) == (2, 2, 5)
    assert len(content["progress"]["history"]) == 1
    assert {"best", "num_bad_epochs"} <= content["progress"]["schedule"].keys()
    assert not content["progress"]["finished"]


# A training whose loss ceases to be finite.


class Diverging(nn.Module):
    """Not a number as soon as the weights have been trained for an epoch, whichever process looks at them."""

    def __init__(self, network):
        super().__init__()
        # In a list, so as not to be part of this module.
        self.network, self.begun = [network], network.trunk[6].bias.detach().clone()

    def forward(self, u, labels):
        loss, watched = ExponentiatedLoss(ExponentiatedLossParameters(loss_scale="unit"))(u, labels)
        moved = (self.network[0].trunk[6].bias - self.begun).abs().sum()
        return loss * torch.where(moved > 0.7, torch.nan, 1.0), watched


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


# Finished trainings.


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


def test_an_unfinished_training_is_never_taken_for_a_finished_one(tmp_path):
    with pytest.raises(Killed):
        fine_tune(KilledAfterSaving(tmp_path, saves=8))
    with pytest.raises(AssertionError, match="a step was taken"):
        fine_tune(CheckpointFolder(tmp_path, 30), NeverAsked())


def test_a_training_whose_steps_are_done_is_finished_only_behind_what_follows_the_last(tmp_path):
    with pytest.raises(Killed):
        fine_tune(KilledAfterSaving(tmp_path, saves=9))
    progress = stored(tmp_path)["progress"]
    assert (progress["steps"], progress["finished"], len(progress["history"])) == (9, False, 2)
    assert fine_tune(CheckpointFolder(tmp_path, 30), NeverAsked()) == uninterrupted()
    assert stored(tmp_path)["progress"]["finished"]


def other_pixel():
    pixels, labels = images()
    pixels[31, 0, 3, 3] ^= 1
    return pixels, labels


def other_label():
    pixels, labels = images()
    labels[31] = (labels[31] + 1) % 3
    return pixels, labels


def other_weight():
    network = hash_network()
    with torch.no_grad():
        network.trunk[0].weight[0, 0, 0, 0] += 1e-6
    return network


CHANGES = [
    ({"learning_rate": 0.04}, "training.learning_rate"),
    ({"epochs": 4}, "training.epochs"),
    ({"chunk_size": 8}, "training.chunk_size"),
    ({"seed": 8}, "seed"),
    ({"configuration": {"loss.temperature": 2.0}}, "loss.temperature"),
    ({"configuration": {"network": "lenet"}}, "loss.temperature"),
    ({"network": other_weight}, "initial weights"),
    ({"data": other_pixel}, "training set"),
    ({"data": other_label}, "training set"),
]


def changed(change):
    """Arguments of `fine_tune`, a change of those of `begun`."""
    made = {name: value() if callable(value) else value for name, value in change.items()}
    return {"configuration": {"loss.temperature": 1.0}, **made}


@pytest.mark.parametrize(("change", "name"), CHANGES)
def test_an_unfinished_training_of_another_configuration_is_refused_by_name_and_kept(tmp_path, change, name):
    with pytest.raises(Killed):
        fine_tune(KilledAfterSaving(tmp_path, saves=4), **changed({}))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="delete the folder to start over") as caught:
        fine_tune(CheckpointFolder(tmp_path, 0), **changed(change))
    assert f"`{name}`" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(("change", "name"), CHANGES)
def test_a_finished_training_of_another_configuration_starts_anew_and_says_so(tmp_path, caplog, change, name):
    fine_tune(CheckpointFolder(tmp_path, 30), **changed({}))
    with caplog.at_level(logging.INFO):
        result = fine_tune(CheckpointFolder(tmp_path, 30), **changed(change))
    assert result == fine_tune(**changed(change))
    assert any(f"`{name}` has changed" in record.getMessage() for record in caplog.records)
    assert stored(tmp_path)["progress"]["finished"]
    assert len(list(tmp_path.iterdir())) == 2


def test_a_refusal_gives_both_values(tmp_path):
    with pytest.raises(Killed):
        fine_tune(KilledAfterSaving(tmp_path, saves=1))
    with pytest.raises(InputError, match=r"`training.learning_rate` 0.05 instead of 0.04"):
        fine_tune(CheckpointFolder(tmp_path, 0), learning_rate=0.04)


def test_a_refusal_says_which_value_one_of_them_lacks(tmp_path):
    with pytest.raises(Killed):
        fine_tune(KilledAfterSaving(tmp_path, saves=1))
    with pytest.raises(InputError, match=r"`loss.sharpness` not given instead of None"):
        fine_tune(CheckpointFolder(tmp_path, 0), configuration={"loss.sharpness": None})


def test_of_a_large_training_set_evenly_chosen_inputs_are_compared(monkeypatch):
    monkeypatch.setattr(resuming_module, "COMPARED_BYTES", 0)
    monkeypatch.setattr(resuming_module, "BLOCK", 6)
    pixels, labels = images()

    def digest(image):
        changed_pixels = pixels.copy()
        if image is not None:
            changed_pixels[image] ^= 1
        return resuming_module.training_set_digest(ImageInputs(changed_pixels, STATISTICS, CPU), labels)

    noticed = [image for image in range(50) if digest(image) != digest(None)]
    assert noticed == [0, 9, 19, 29, 39, 49]


# Checkpoints and what is trained.


def test_training_without_checkpoints_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fine_tune(epochs=1)
    assert list(tmp_path.iterdir()) == []


def test_checkpoints_change_nothing(tmp_path):
    assert fine_tune(CheckpointFolder(tmp_path, 0)) == uninterrupted()


def test_a_stop_request_saves_behind_the_step_and_the_next_process_goes_on(tmp_path):
    class Stopping(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = 0

        def forward(self, u, labels):
            self.steps += 1
            if self.steps == 5:
                signal.raise_signal(signal.SIGTERM)
            parameters_ = ExponentiatedLossParameters(loss_scale="unit", balance_pairs=True)
            return ExponentiatedLoss(parameters_)(u, labels)

    with pytest.raises(TrainingInterrupted, match="interrupted in epoch 2 behind step 2; the same command goes on"):
        fine_tune(CheckpointFolder(tmp_path, 30), Stopping())
    assert stored(tmp_path)["progress"]["steps"] == 5
    assert fine_tune(CheckpointFolder(tmp_path, 30)) == uninterrupted()
