"""Training survives being killed at any moment: it ends with the weights and the history it would have had."""

import logging

import pytest
import torch
from torch import nn

from deephash_pipeline.losses import (
    DFH,
    DSDH,
    CIBHash,
    ExponentiatedLoss,
    GreedyHash,
    HashingLoss,
    HashNet,
    SimilarityBits,
)
from deephash_pipeline.networks import (
    ClassificationHead,
    HashLayerParameters,
    HashNetwork,
    build_hash_layer,
    initialise,
)
from deephash_pipeline.training import CheckpointFolder, TrainingDiverged
from tests.training.resuming.small_fine_tuning import (
    AfterSaving,
    Killed,
    exactly,
    fine_tune,
    hash_network,
    images,
    sha256,
    stored,
    uninterrupted,
)

STEPS_PER_EPOCH = 3

VARIANTS = [
    dict(schedule="one_cycle"),
    dict(schedule="plateau"),
    dict(schedule="one_cycle", chunk_size=5),
    dict(schedule="plateau", momentum=0.0),
    dict(schedule="one_cycle", precision="bfloat16"),
    dict(schedule="one_cycle", averaging=0.9),
    # The loss hardly falls: the rate drops until training counts as converged, before the last epoch.
    dict(schedule="plateau", learning_rate=1e-4, plateau_patience=1, plateau_drops=2, epochs=12),
]


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


class MovingProxies(HashingLoss):
    """Learned class proxies, and a moving mean of u, which the loss keeps away from 0."""

    needs = ("code_length",)
    code_length: int

    def __post_init__(self):
        self.proxies = nn.Parameter(torch.linspace(-1, 1, 3 * self.code_length).view(3, -1))
        self.register_buffer("mean", torch.zeros(self.code_length))

    def loss_and_metrics(self, u, labels):
        self.mean.lerp_(u.detach().mean(0), 0.1)
        loss = (u - self.proxies[labels]).square().mean() + (u * self.mean).mean()
        return loss, {"proxy_size": self.proxies.abs().mean()}


RIVALS = {
    "a loss with a layer of its own": (greedy_network, GreedyHash),
    "bits that keep similarities beside a loss that follows progress": (hash_network, similarity_bits),
    "a divided hash layer": (divided_network, HashNet),
    "a loss with codes of its own": (hash_network, lambda: DSDH(6, images()[1], quantisation_weight=0.5)),
    "a loss with centres of its own": (hash_network, lambda: DFH(6, images()[1])),
    "learned proxies and a moving mean": (hash_network, lambda: MovingProxies(6)),
    "a frozen trunk and two views": (frozen_network, CIBHash),
}


@pytest.mark.parametrize("case", [*VARIANTS, *RIVALS], ids=str)
def test_a_training_killed_after_any_step_ends_bit_for_bit_as_if_it_had_not_been(tmp_path, case):
    network, loss, changes = (*RIVALS[case], {}) if isinstance(case, str) else (hash_network, lambda: None, case)
    copies = tmp_path / "copies"
    weights, history = fine_tune(network=network(), objective=loss(), **changes)
    whole = fine_tune(AfterSaving(tmp_path / "whole", copies), loss(), network(), **changes)
    assert whole == (weights, history)
    folders = sorted(copies.iterdir())
    assert len(folders) == len(history) * STEPS_PER_EPOCH + 1
    for folder in folders:
        resumed_weights, resumed_history = fine_tune(CheckpointFolder(folder, 30), loss(), network(), **changes)
        assert resumed_weights == weights
        assert exactly(resumed_history) == exactly(history)


@pytest.mark.parametrize("factor", [1, 2])
def test_parameters_of_the_objective_are_learned(factor):
    loss = MovingProxies(6)
    before = loss.proxies.detach().clone()
    _, history = fine_tune(objective=loss, head_rate_factor=factor)
    assert (loss.proxies != before).all()
    assert len({row["proxy_size"] for row in history}) == len(history)


def test_the_plateau_variant_drops_its_rate_and_converges_early():
    _, history = fine_tune(**VARIANTS[-1])
    rates = [row["learning_rate"] for row in history]
    assert len(rates) < 12
    assert rates[-1] < rates[0] / 50


def test_a_training_killed_again_and_again_ends_bit_for_bit_as_if_it_had_not_been(tmp_path):
    kills = 0
    while True:
        try:
            result = fine_tune(AfterSaving(tmp_path, saves=1 + kills % 2))
            break
        except Killed:
            kills += 1
    assert kills >= 6
    assert stored(tmp_path)["progress"]["steps"] == 3 * STEPS_PER_EPOCH
    weights, history = uninterrupted()
    assert result[0] == weights
    assert exactly(result[1]) == exactly(history)


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
    return sha256(network), str(caught.value), network.trunk[6].bias.tolist()


def test_a_training_that_diverges_does_so_after_a_kill_with_the_same_last_good_weights(tmp_path):
    weights, message, bias = diverge(None)
    copies = tmp_path / "copies"
    assert diverge(AfterSaving(tmp_path / "whole", copies)) == (weights, message, bias)
    assert not list((tmp_path / "whole").iterdir()), "a lower rate would be refused"
    for folder in sorted(copies.iterdir())[-5:]:
        assert stored(folder)["progress"]["epoch"] > 1
        assert diverge(CheckpointFolder(folder, 30)) == (weights, message, bias)


# A training that is finished.


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
        fine_tune(AfterSaving(tmp_path, saves=9))
    progress = stored(tmp_path)["progress"]
    assert (progress["steps"], progress["finished"], len(progress["history"])) == (9, False, 2)
    assert fine_tune(CheckpointFolder(tmp_path, 30), NeverAsked()) == uninterrupted()
    assert stored(tmp_path)["progress"]["finished"]
