"""The gradient of a batch: the same whole, in chunks, and as autograd has it."""

import numpy as np
import pytest
import torch
from torch import nn

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.augmentation import AugmentationParameters
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.losses import CIBHash, CNNHPlus, ExponentiatedLoss
from deephash_pipeline.networks import (
    ClassificationHead,
    HashLayer,
    HashLayerParameters,
    HashNetwork,
    SoftmaxNetwork,
    TableTrunk,
    initialise,
)
from deephash_pipeline.networks.layers import Convolution, Data, InnerProduct, MaxPooling, ReLU
from deephash_pipeline.training import ArrayInputs, CrossEntropy, LabelledInputs, TrainingParameters
from deephash_pipeline.training.gradients import BatchGradients
from tests.training.double_inputs import DoubleInputs

CPU = torch.device("cpu")
BATCH = 28
CLASSES = 4
SEED = 7
TABLE = (
    Data(output=(2, 10, 8)),
    Convolution(4, kernel=3, stride=1, output=(4, 8, 6)),
    MaxPooling(kernel=2, stride=2, output=(4, 4, 3)),
    ReLU(output=(4, 4, 3)),
    InnerProduct(6, output=(6,)),
)
MOVES = AugmentationParameters(shift_pixels=2, horizontal_flip=True, rotation_degrees=15, scale_range=0.1)


class DroppingHead(SoftmaxNetwork):
    """A head that drops units, too."""

    def head(self, z):
        logits = self.softmax(self.dropout(z))
        return logits


def training_set(augmentation=MOVES):
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (60, 2, 10, 8)).astype(np.uint8)
    statistics = {"mean": [0.4, 0.5], "standard_deviation": [0.3, 0.2]}
    return ImageInputs(images, statistics, CPU, augmentation), torch.from_numpy(generator.integers(0, CLASSES, 60))


def trunk(dropout=True, batch_normalisation=False):
    made = TableTrunk(TABLE)
    if dropout:
        made.layers.insert(4, nn.Dropout(0.3))
        made.layers.append(nn.Dropout(0.4))
    if batch_normalisation:
        made.layers.insert(2, nn.BatchNorm2d(4))
    return made


def softmax_network():
    return SoftmaxNetwork(trunk(), CLASSES)


def dropping_network():
    network = DroppingHead(trunk(), CLASSES)
    network.dropout = nn.Dropout(0.5)
    return network


def hash_network():
    """With the statistics of the whole batch in its hash layer."""
    return HashNetwork(trunk(), HashLayer(6, 12, HashLayerParameters(centring=True, scale=3.0), 0))


def classifying_network():
    """With logits beside u."""
    network = hash_network()
    return HashNetwork(network.trunk, network.hash_layer, ClassificationHead("z", 6, CLASSES))


HASHING = ExponentiatedLoss(loss_scale="unit", balance_pairs=True)
CASES = {
    "softmax": (softmax_network, CrossEntropy()),
    "dropping head": (dropping_network, CrossEntropy()),
    "hashing": (hash_network, HASHING),
    "hashing and classifying": (classifying_network, CNNHPlus(12, np.arange(CLASSES))),
}


def gradient(network, objective, inputs, labels, chunk_size=None, **more):
    """The gradients by parameter, and the loss, of one fixed batch."""
    initialise(network, 3)
    network.train().to(memory_format=torch.channels_last)
    parameters = TrainingParameters(epochs=1, batch_size=BATCH, learning_rate=1, chunk_size=chunk_size, **more)
    compute = BatchGradients(network, objective, LabelledInputs(inputs, labels.numpy()), parameters, CPU)
    loss, _ = compute(np.random.default_rng(1).permutation(len(inputs))[:BATCH], SEED)
    return {name: value.grad for name, value in network.named_parameters() if value.grad is not None}, float(loss)


def relative_difference(first, second):
    assert first.keys() == second.keys() and first
    difference = sum(float((first[name] - second[name]).double().square().sum()) for name in first)
    return (difference / sum(float(value.double().square().sum()) for value in second.values())) ** 0.5


@pytest.mark.parametrize("chunk_size", [14, 4, 5, 1, 40])
@pytest.mark.parametrize("case", CASES)
def test_the_gradient_in_chunks_of_any_size_is_that_of_one_piece(case, chunk_size):
    make, objective = CASES[case]
    inputs, labels = training_set()
    for double, tolerance in ((True, 1e-12), (False, 3e-6)):
        supply = DoubleInputs(inputs) if double else inputs
        networks = [make().double() if double else make() for _ in range(2)]
        whole, loss = gradient(networks[0], objective, supply, labels)
        in_chunks, loss_in_chunks = gradient(networks[1], objective, supply, labels, chunk_size)
        assert relative_difference(in_chunks, whole) < tolerance
        assert loss_in_chunks == pytest.approx(loss, rel=tolerance)
        for name, buffer in networks[1].named_buffers(remove_duplicate=False):
            if not name.endswith("first"):
                torch.testing.assert_close(buffer, networks[0].get_buffer(name), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", ["softmax", "hashing"])
def test_the_gradient_is_autograds_through_the_whole_network(case):
    make, objective = CASES[case]
    inputs, labels = training_set()
    ours, loss = gradient(make().double(), objective, DoubleInputs(inputs), labels, 4)

    network = make().double()
    # One step only to put the counter-based dropout in place, with the counters of the whole batch.
    gradient(network, objective, DoubleInputs(inputs), labels)
    network.zero_grad()
    indices = np.random.default_rng(1).permutation(len(inputs))[:BATCH]
    expected = objective(network(DoubleInputs(inputs).batch(indices, SEED)), labels[torch.from_numpy(indices)])
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    assert relative_difference(ours, {name: value.grad for name, value in network.named_parameters()}) < 1e-12


def test_two_views_are_a_batch_followed_by_itself_and_moved_by_other_draws():
    inputs, labels = training_set()
    seen = {}

    class Remembered(CIBHash):
        def loss_and_metrics(self, outputs, labels):
            seen["z"], seen["labels"] = outputs[1], labels
            return super().loss_and_metrics(outputs, labels)

    network = HashNetwork(trunk(dropout=False), hash_network().hash_layer, frozen_trunk=True, gives_z=True)
    gradient(network, Remembered(), inputs, labels, chunk_size=5)
    indices = np.random.default_rng(1).permutation(len(inputs))[:BATCH]
    views = [inputs.batch(indices, SEED), inputs.batch(indices, SEED, first=BATCH)]
    torch.testing.assert_close(seen["z"], network.trunk(torch.cat(views)).detach())
    assert not torch.allclose(seen["z"][:BATCH], seen["z"][BATCH:], rtol=0.01)
    assert seen["labels"].tolist() == 2 * labels[torch.from_numpy(indices)].tolist()


def test_batch_normalisation_in_the_trunk_is_by_chunk_and_sees_each_sample_once():
    inputs, labels = training_set()

    def running(chunk_size):
        network = SoftmaxNetwork(trunk(batch_normalisation=True), CLASSES)
        gradient(network, CrossEntropy(), inputs, labels, chunk_size)
        layer = network.trunk.layers[2]
        return layer

    whole, chunks = running(None), running(7)
    assert whole.num_batches_tracked == 1
    assert chunks.num_batches_tracked == 4
    # Four chunks move the running mean four times: towards their means, of which the whole batch's is the mean.
    torch.testing.assert_close(chunks.running_mean / (1 - 0.9**4), whole.running_mean / 0.1, rtol=0.1, atol=0.01)


def test_a_second_batch_replaces_the_gradients_of_the_first():
    inputs, labels = training_set()
    network = hash_network()
    parameters = TrainingParameters(epochs=1, batch_size=BATCH, learning_rate=1, chunk_size=5)
    compute = BatchGradients(network, HASHING, LabelledInputs(inputs, labels.numpy()), parameters, CPU)
    results = []
    for batch in (np.arange(BATCH), np.arange(BATCH) + 10, np.arange(BATCH)):
        compute(batch, SEED)
        results.append([value.grad.clone() for value in network.parameters() if value.grad is not None])
    first, other, again = results
    assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))
    assert not any(torch.equal(*pair) for pair in zip(first, other, strict=True))


def test_a_network_without_a_trunk_is_computed_whole_and_refuses_chunks():
    x, labels = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32), torch.arange(40) % CLASSES
    network = nn.Sequential(nn.Linear(5, 8), nn.Dropout(0.2), nn.Linear(8, CLASSES))
    found, _ = gradient(network, CrossEntropy(), ArrayInputs(x, CPU), labels)
    assert found.keys() == dict(network.named_parameters()).keys()
    with pytest.raises(InputError, match="takes its batches whole: leave out `chunk_size`"):
        gradient(network, CrossEntropy(), ArrayInputs(x, CPU), labels, 4)


@pytest.mark.parametrize("chunk_size", [None, 5])
def test_the_metrics_are_those_of_the_objective_and_a_loss_of_pytorch_has_none(chunk_size):
    inputs, labels = training_set()
    parameters = TrainingParameters(epochs=1, batch_size=BATCH, learning_rate=1, chunk_size=chunk_size)
    for objective, names in ((CrossEntropy(), ["accuracy"]), (nn.CrossEntropyLoss(), [])):
        compute = BatchGradients(softmax_network(), objective, LabelledInputs(inputs, labels.numpy()), parameters, CPU)
        loss, metrics = compute(np.arange(BATCH), SEED)
        assert list(metrics) == names
        assert not any(tensor.requires_grad for tensor in (loss, *metrics.values()))


@pytest.mark.parametrize("chunk_size", [None, 5])
def test_bfloat16_stays_near_float32_and_the_head_and_its_gradient_are_float32(chunk_size):
    inputs, labels = training_set()
    seen = []

    def objective(outputs, chosen):
        seen.append(outputs.dtype)
        loss = HASHING(outputs, chosen)
        return loss

    full, _ = gradient(hash_network(), objective, inputs, labels, chunk_size)
    half, _ = gradient(hash_network(), objective, inputs, labels, chunk_size, precision="bfloat16")
    assert set(seen) == {torch.float32}
    assert {value.dtype for value in half.values()} == {torch.float32}
    assert 1e-4 < relative_difference(half, full) < 0.3


def saved_by(compute):
    """Bytes that autograd keeps for the backward pass, at their most."""
    kept = {}
    most = 0

    def pack(tensor):
        nonlocal most
        kept[id(tensor)] = tensor.nbytes
        most = max(most, sum(kept.values()))
        return tensor, Release(id(tensor))

    class Release:
        def __init__(self, key):
            self.key = key

        def __del__(self):
            kept.pop(self.key, None)

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed[0]):
        compute()
    return most


def test_memory_for_the_backward_pass_follows_the_chunk_and_not_the_batch():
    inputs, labels = training_set()
    whole = saved_by(lambda: gradient(hash_network(), HASHING, inputs, labels))
    in_chunks = saved_by(lambda: gradient(hash_network(), HASHING, inputs, labels, 2))
    assert in_chunks < whole / 5
