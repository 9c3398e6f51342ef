"""The networks are the tables of the paper's appendix, and the hash layer is a set of signed projections."""

import pytest
import torch

from deephash_pipeline import networks
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.networks.layers import Convolution, Data

# Weights and biases, filter by filter.
PARAMETERS = {
    "lenet": 20 * (25 + 1) + 50 * (20 * 25 + 1) + 500 * (800 + 1),
    "cifar10_full": 32 * (3 * 25 + 1) + 32 * (32 * 25 + 1) + 64 * (32 * 25 + 1),
    "caffenet": 96 * (3 * 121 + 1) + 256 * (48 * 25 + 1) + 384 * (256 * 9 + 1) + (384 + 256) * (192 * 9 + 1),
    "caffenet_ungrouped": 96 * (3 * 121 + 1) + 256 * (96 * 25 + 1) + 384 * (256 * 9 + 1) + (384 + 256) * (384 * 9 + 1),
}
PARAMETERS["kaggle_face"] = PARAMETERS["cifar10_full"]
Z_DIMENSIONS = {"lenet": 500, "cifar10_full": 1024, "kaggle_face": 2304, "caffenet": 9216, "caffenet_ungrouped": 9216}


@pytest.mark.parametrize("network", sorted(PARAMETERS))
def test_the_papers_networks_have_caffes_number_of_parameters_and_a_z_that_is_never_negative(network):
    trunk = networks.build_trunk(network)
    networks.initialise(trunk, seed=1)
    assert sum(weight.numel() for weight in trunk.parameters()) == PARAMETERS[network]
    z = trunk(torch.randn(2, *trunk.image_shape))
    assert z.shape == (2, Z_DIMENSIONS[network])
    assert trunk.z_dimension == Z_DIMENSIONS[network]
    assert z.min() >= 0


@pytest.mark.parametrize("network", sorted(networks.OWN_NETWORKS))
def test_fresh_weights_let_every_layer_learn_from_one_step(network):
    small = (3, 24, 32) if network in networks.SMALL_RESNETS else networks.USUAL_IMAGE_SHAPE
    trunk = networks.build_trunk(network, small).to(memory_format=torch.channels_last)
    classifier = networks.SoftmaxNetwork(trunk, classes=10)
    networks.initialise(classifier, seed=2)
    images = torch.randn(2, *trunk.image_shape, generator=torch.Generator().manual_seed(0))
    images, labels = images.contiguous(memory_format=torch.channels_last), torch.tensor([1, 7])
    optimizer = torch.optim.SGD(classifier.parameters(), lr=0.001)
    before = [weight.detach().clone() for weight in classifier.parameters()]

    losses = []
    for _ in range(2):
        loss = torch.nn.functional.cross_entropy(classifier(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    assert losses[1] < losses[0]
    assert not any(torch.equal(a, b) for a, b in zip(before, classifier.parameters(), strict=True))


def test_the_order_of_the_cifar10_table_is_the_papers():
    names = [type(layer).__name__ for layer in networks.build_trunk("cifar10_full").layers]
    first = ["Conv2d", "FastMaxPooling", "ReLU", "LocalResponseNormalisation"]
    second = ["Conv2d", "ReLU", "FastAveragePooling", "LocalResponseNormalisation"]
    assert names == ["Identity", *first, *second, "Conv2d", "ReLU", "FastAveragePooling"]


def test_a_table_whose_stated_output_is_wrong_is_refused():
    with pytest.raises(ValueError, match=r"layer 2 .* gives \(4, 6, 6\)"):
        networks.TableTrunk((Data(output=(1, 8, 8)), Convolution(4, kernel=3, stride=1, output=(4, 8, 8))))


@pytest.mark.parametrize("network", sorted(networks.NETWORKS))
def test_the_seed_alone_determines_the_weights(network):
    first, second, other = (networks.build_trunk(network) for _ in range(3))
    for trunk, seed in ((first, 5), (second, 5), (other, 6)):
        networks.initialise(trunk, seed)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(next(first.parameters()), next(other.parameters()))


def hash_layer(code_length=8, **parameters):
    return networks.build_hash_layer(20, code_length, networks.HashLayerParameters(**parameters), seed=3)


def test_the_papers_hash_layer_is_a_bare_projection():
    layer, z = hash_layer(), torch.rand(5, 20)
    torch.testing.assert_close(layer(z), z @ layer.weight.T)
    assert layer.bias is None


@pytest.mark.parametrize(
    "departures",
    [
        {},
        {"bias": True},
        {"centring": True},
        {"scale": 2.0},
        {"centring": True, "scale": 3.0, "momentum": 0.5},
        {"features_per_bit": 5, "bias": True},
        {"features_per_bit": 5, "centring": True, "scale": 3.0},
    ],
)
def test_the_code_of_any_hash_layer_is_a_projection_and_a_threshold(departures):
    layer, z = hash_layer(**departures), torch.rand(200, 20)
    if layer.bias is not None:
        torch.nn.init.normal_(layer.bias, generator=torch.Generator().manual_seed(0))
    for _ in range(3):
        layer(z)
    layer.eval()
    code = layer.linear_code()
    assert torch.equal(z @ code.projection >= code.threshold, layer(z) >= 0)


@pytest.mark.parametrize("code_length", [1, 8])
def test_the_code_of_a_hash_layer_stays_as_it_is_when_the_layer_is_trained_on(code_length):
    layer = networks.HashLayer(20, code_length, networks.HashLayerParameters(), seed=0)
    projection = layer.linear_code().projection
    assert not projection.requires_grad and projection.is_contiguous()
    before = projection.clone()
    with torch.no_grad():
        layer.weight.add_(1)
    assert torch.equal(projection, before)


def test_centred_and_scaled_u_has_mean_zero_and_the_deviation_asked_for():
    u = hash_layer(centring=True, scale=3.0)(torch.rand(400, 20) * 50)
    torch.testing.assert_close(u.mean(0), torch.zeros(8), atol=1e-4, rtol=0)
    torch.testing.assert_close(u.std(0, unbiased=False), torch.full((8,), 3.0), atol=1e-3, rtol=0)


def test_running_statistics_approach_those_of_the_data():
    layer, z = hash_layer(centring=True, scale=1.0), torch.rand(400, 20)
    for _ in range(200):
        layer(z)
    layer.eval()
    torch.testing.assert_close(layer(z).mean(0), torch.zeros(8), atol=1e-4, rtol=0)


@pytest.mark.parametrize("features_per_bit", [None, 5])
def test_fit_scale_gives_u_unit_deviation_whatever_the_scale_of_z(features_per_bit):
    layer, z = hash_layer(features_per_bit=features_per_bit), torch.rand(300, 20) * 1000
    layer.fit_scale(z)
    torch.testing.assert_close(layer(z).std(0, unbiased=False), torch.ones(8))


def test_a_divided_layer_makes_each_bit_of_its_own_slice_of_linear_features():
    layer, z = hash_layer(features_per_bit=5), torch.rand(7, 20)
    features = torch.nn.functional.linear(z, layer.features.flatten(0, 1))
    assert features.shape == (7, 8 * 5)
    bits = [slice_ @ weights for slice_, weights in zip(features.split(5, dim=1), layer.slices, strict=True)]
    torch.testing.assert_close(layer(z), torch.stack(bits, dim=1))


def test_a_classifier_beside_the_hash_layer_gives_logits_in_training_and_leaves_the_code_alone():
    trunk, images = networks.build_trunk("lenet"), torch.rand(4, 1, 28, 28)
    layer = networks.HashLayer(500, 12, networks.HashLayerParameters(), seed=0)
    plain, z = networks.HashNetwork(trunk, layer), trunk(images)
    for reads, dimension in (("z", 500), ("code", 12)):
        network = networks.HashNetwork(trunk, layer, networks.ClassificationHead(reads, dimension, 10))
        u, logits = network.head(z)
        assert torch.equal(u, plain.head(z))
        assert torch.equal(network(images), plain(images))
        assert logits.shape == (4, 10)
        assert set(network.state_dict()) > set(plain.state_dict())


def test_stage_two_squashes_u_as_the_loss_does():
    layer = hash_layer()
    network, z = networks.HashSoftmaxNetwork(layer, 3), torch.rand(6, 20)
    squashed = 2 * torch.sigmoid(layer(z)) - 1
    torch.testing.assert_close(network(z), network.softmax(squashed))


@pytest.mark.parametrize("shape", [(1, 16, 16), (3, 48, 40), (3, 96, 96), (1, 65, 17)])
@pytest.mark.parametrize(("network", "z_dimension"), [("small_resnet", 128), ("medium_resnet", 256)])
def test_a_small_residual_network_takes_any_small_image_grey_or_colour(network, z_dimension, shape):
    trunk = networks.build_trunk(network, shape)
    networks.initialise(trunk, seed=1)
    first = {name: weight.clone() for name, weight in trunk.state_dict().items()}
    assert trunk.eval()(torch.randn(2, *shape)).shape == (2, z_dimension)
    networks.initialise(trunk, seed=1)
    assert all(torch.equal(first[name], weight) for name, weight in trunk.state_dict().items())
    networks.initialise(trunk, seed=2)
    assert not torch.equal(first["layers.0.0.weight"], trunk.state_dict()["layers.0.0.weight"])


@pytest.mark.parametrize("shape", [(2, 32, 32), (3, 15, 32), (3, 32, 8)])
def test_a_small_residual_network_says_which_images_it_takes(shape):
    with pytest.raises(InputError, match=r"takes 1 or 3 channels and sides of 16 pixels at least"):
        networks.build_trunk("small_resnet", shape)
