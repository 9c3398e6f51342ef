"""What holds for every loss that fine-tuning takes by name."""

import numpy as np
import pytest
import torch
from torch import nn

from deephash_pipeline.errors import InputError
from deephash_pipeline.losses import LOSSES, build_loss
from deephash_pipeline.losses.cnnh import CNNHParameters, CNNHPlusParameters
from deephash_pipeline.losses.csq import CSQParameters
from deephash_pipeline.losses.dnnh import DNNHParameters
from deephash_pipeline.losses.dpsh import DPSHParameters
from deephash_pipeline.losses.exponentiated import formula
from deephash_pipeline.losses.greedy_hash import GreedyHashParameters
from deephash_pipeline.losses.hashnet import HashNetParameters
from deephash_pipeline.networks import (
    ClassificationHead,
    HashLayerParameters,
    HashNetwork,
    build_hash_layer,
    initialise,
)
from deephash_pipeline.retrieval import count_distances, mean_average_precision, pack_bits
from deephash_pipeline.training import ArrayInputs, TrainingParameters, train

CPU = torch.device("cpu")
CLASSES = 4
LABELS = np.arange(120) % CLASSES
PARAMETERS = [
    formula.ExponentiatedLossParameters(loss_scale="unit", balance_pairs=True),
    CNNHParameters(),
    CNNHPlusParameters(),
    DNNHParameters(),
    DPSHParameters(),
    HashNetParameters(),
    GreedyHashParameters(),
    CSQParameters(),
]
each_loss = pytest.mark.parametrize("parameters", PARAMETERS, ids=lambda parameters: parameters.name)


def test_every_loss_is_tested_here():
    assert [parameters.name for parameters in PARAMETERS] == list(LOSSES)


def gradient(parameters, u, labels):
    """Value, gradient for u and watched figures, for some logits where the loss wants any."""
    logits = torch.tanh(u[:, :CLASSES])
    u = u.clone().requires_grad_()
    loss = build_loss(parameters, u.shape[1], LABELS, seed=1)
    value, watched = loss(u if loss.classifier is None else (u, logits), labels)
    value.backward()
    return value, u.grad, watched


@each_loss
@pytest.mark.parametrize("scale", [0.0, 1e-20, 1.0, 1e3])
@pytest.mark.parametrize("labels", [[2], [1, 1, 1, 1], [0, 1, 2, 3], [0, 1, 1, 3]], ids=str)
def test_loss_and_gradient_are_finite_whatever_the_batch(parameters, labels, scale):
    u = torch.randn(len(labels), 8, generator=torch.Generator().manual_seed(0)) * scale
    value, found, watched = gradient(parameters, u, torch.tensor(labels))
    assert value.ndim == 0
    assert torch.isfinite(value)
    assert torch.isfinite(found).all()
    assert all(torch.isfinite(figure) for figure in watched.values())


@each_loss
def test_the_order_of_a_batch_does_not_matter(parameters):
    generator = torch.Generator().manual_seed(3)
    u, labels = torch.randn(9, 8, generator=generator, dtype=torch.float64), torch.arange(9) % CLASSES
    order = torch.randperm(9, generator=generator)
    value, found, _ = gradient(parameters, u, labels)
    other_value, other_found, _ = gradient(parameters, u[order], labels[order])
    torch.testing.assert_close(other_value, value)
    torch.testing.assert_close(other_found, found[order])


@each_loss
def test_figures_are_watched_as_detached_scalars_and_share_the_deviation_of_u(parameters):
    u = torch.randn(12, 8, generator=torch.Generator().manual_seed(5))
    _, _, watched = gradient(parameters, u, torch.arange(12) % CLASSES)
    assert watched["u_standard_deviation"].item() == pytest.approx(u.std().item())
    assert all(figure.ndim == 0 and not figure.requires_grad for figure in watched.values())


@each_loss
def test_the_seed_alone_decides_what_a_loss_draws(parameters):
    one, again = (build_loss(parameters, 12, LABELS, seed).state_dict() for seed in (7, 7))
    assert all(torch.equal(one[name], again[name]) for name in one)


def test_a_loss_that_the_training_set_does_not_allow_says_so():
    with pytest.raises(InputError, match="use longer codes"):
        build_loss(CSQParameters(), 1, LABELS, 0)


# Training.


def clusters():
    """Points around one centre for each class, in ten dimensions."""
    generator = np.random.default_rng(4)
    centres = generator.normal(size=(CLASSES, 10))
    return (centres[LABELS] + generator.normal(scale=0.7, size=(120, 10))).astype(np.float32)


def network_for(parameters, bits):
    trunk = nn.Sequential(nn.Linear(10, 20), nn.ReLU())
    initialise(trunk, 1)
    divided = 3 if parameters.name == "dnnh" else None
    layer = build_hash_layer(20, bits, HashLayerParameters(bias=True, features_per_bit=divided), 2)
    layer.fit_scale(trunk(torch.from_numpy(clusters())).detach())
    reads = LOSSES[parameters.name].classifier
    if reads is None:
        return HashNetwork(trunk, layer)
    classifier = ClassificationHead(reads, 20 if reads == "z" else bits, CLASSES)
    initialise(classifier, 3)
    return HashNetwork(trunk, layer, classifier)


@torch.no_grad()
def mean_average_precision_of(network):
    code = network.hash_layer.linear_code()
    bits = network.trunk(torch.from_numpy(clusters())) @ code.projection >= code.threshold
    codes = pack_bits(bits.numpy())
    return mean_average_precision(count_distances(codes, LABELS, codes, LABELS, bits.shape[1]))


@each_loss
def test_a_few_epochs_on_any_loss_make_better_codes(parameters):
    network = network_for(parameters, bits=8)
    before = mean_average_precision_of(network)
    settings = TrainingParameters(epochs=15, batch_size=40, learning_rate=0.05, schedule="one_cycle")
    loss = build_loss(parameters, 8, LABELS, seed=1)
    history = train(network, loss, ArrayInputs(clusters(), CPU), LABELS, settings, 0, CPU, parameters.name)
    after = mean_average_precision_of(network)
    assert after > before + 0.1
    assert after > 0.85
    assert len(history) == 15
