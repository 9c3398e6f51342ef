"""A classifier of torchvision without its last layer is a trunk like the paper's own."""

from pathlib import Path
from urllib.error import URLError

import pytest
import safetensors.torch
import torch
import torchvision
from pydantic import ValidationError
from torch import nn
from torchvision.models import get_model

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.networks import TrunkParameters, build_trunk, initialise
from deephash_pipeline.networks.backbone import unwrapped
from deephash_pipeline.networks.torchvision_models import DroppedSamples
from deephash_pipeline.training.dropout import replace_dropout

KINDS = (
    *("convnext_tiny", "densenet121", "efficientnet_b0", "mobilenet_v3_small", "regnet_y_400mf", "resnet18"),
    "swin_t",
)


def images(count=3, channels=3, side=32):
    return torch.randn(count, channels, side, side, generator=torch.Generator().manual_seed(0))


def trunk_of(network, channels=3, side=32, seed=1, **parameters):
    trunk = build_trunk(network, (channels, side, side), TrunkParameters(**parameters))
    initialise(trunk, seed)
    return trunk


@pytest.mark.parametrize("network", KINDS)
def test_z_is_what_the_last_layer_of_the_same_model_is_given_and_all_draws_are_counter_based(network):
    trunk = trunk_of(network, small_image_stem="auto" if network != "resnet18" else False).eval()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(1, "torchvision"))
        model = get_model(network).eval()
    given = []
    last = [layer for layer in model.modules() if isinstance(layer, nn.Linear)][-1]
    last.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0]))
    with torch.no_grad():
        model(images())
        z = trunk(images())
    assert z.shape == (3, last.in_features) == (3, trunk.z_dimension)
    torch.testing.assert_close(z, given[0])

    layers = replace_dropout(trunk.train())

    def z_in_training(seed):
        for layer in layers:
            layer.set_counter(seed, first=0)
        with torch.no_grad():
            return trunk(images())

    assert torch.equal(z_in_training(1), z_in_training(1))
    drops = any(layer.probability > 0 for layer in layers)
    assert torch.equal(z_in_training(1), z_in_training(2)) != drops


def test_a_vision_transformer_is_built_for_the_size_of_the_images_and_its_pretrained_weights_for_theirs():
    trunk = build_trunk("vit_b_32", (1, 64, 64))
    assert trunk.image_shape == (1, 64, 64)
    assert trunk.z_dimension == 768
    assert trunk.layers.encoder.pos_embedding.shape == (1, 4 + 1, 768)
    with pytest.raises(InputError, match=r"`vit_b_32` cannot be loaded .*224.* `trunk\.image_size`"):
        initialise(trunk, seed=1, pretrained=True)


def test_a_resnet_gets_a_stem_for_small_images_up_to_64_pixels_unless_configured_otherwise():
    def stem(side, **parameters):
        layers = build_trunk("resnet18", (3, side, side), TrunkParameters(**parameters)).layers
        return layers.conv1.kernel_size[0], layers.conv1.stride[0], isinstance(layers.maxpool, nn.Identity)

    small, usual = (3, 1, True), (7, 2, False)
    assert stem(64) == stem(96, small_image_stem=True) == small
    assert stem(65) == stem(32, small_image_stem=False) == usual


def test_image_size_is_that_of_the_crops_that_go_in():
    trunk = build_trunk("resnet18", (3, 96, 80), TrunkParameters(image_size=64))
    assert trunk.image_shape == (3, 64, 64)
    assert trunk.image_size == (64, 64)


def test_grey_is_replicated_to_three_channels():
    grey = images(channels=1)
    alone, replicated = trunk_of("resnet18", channels=1).eval(), trunk_of("resnet18").eval()
    assert torch.equal(alone(grey), replicated(grey.repeat(1, 3, 1, 1)))


@pytest.mark.parametrize(
    ("network", "shape", "parameters", "message"),
    [
        ("resnet19", (3, 32, 32), {}, "unknown network `resnet19`: choose one of caffenet"),
        ("alexnet", (3, 32, 32), {}, r"`alexnet` cannot take images of shape \(3, 32, 32\) .*: set `trunk.image_size`"),
        ("vit_b_32", (3, 28, 28), {}, r"`vit_b_32` cannot take images of shape \(3, 28, 28\)"),
        ("resnet18", (4, 32, 32), {}, "takes images of 1 or 3 channels, got 4"),
        ("mobilenet_v2", (3, 32, 32), {"small_image_stem": True}, "`mobilenet_v2` has no stem for small images"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line_before_any_work(network, shape, parameters, message):
    with pytest.raises(InputError, match=message) as caught:
        build_trunk(network, shape, TrunkParameters(**parameters))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("network", "side", "z_dimension"), [("googlenet", 64, 1024), ("inception_v3", 80, 2048)])
def test_a_classifier_with_others_at_its_side_is_taken_without_them(network, side, z_dimension):
    trunk = trunk_of(network, side=side)
    assert trunk.z_dimension == z_dimension
    assert trunk(images(side=side)).shape == (3, z_dimension)
    assert not [name for name, _ in trunk.named_modules() if "aux" in name.lower()]


def test_pretrained_weights_of_a_classifier_with_others_at_its_side_are_loaded(monkeypatch):
    stored = get_model("inception_v3", init_weights=True).state_dict()
    monkeypatch.setattr(torchvision.models.Inception_V3_Weights, "get_state_dict", lambda *_, **__: stored)
    trunk = build_trunk("inception_v3", (3, 80, 80))
    initialise(trunk, seed=1, pretrained=True)
    assert torch.equal(trunk.layers.Mixed_7c.branch_pool.conv.weight, stored["Mixed_7c.branch_pool.conv.weight"])


def test_of_a_squeezenet_z_is_the_mean_of_each_channel_below_its_last_convolution():
    trunk = trunk_of("squeezenet1_1", side=64).eval()
    with torch.no_grad():
        expected = trunk.layers.features(images(side=64)).mean((2, 3))
        torch.testing.assert_close(trunk(images(side=64)), expected)
    assert trunk.z_dimension == 512


def test_a_model_that_does_not_end_in_one_linear_layer_is_refused(monkeypatch):
    monkeypatch.setattr("torchvision.models.get_model", lambda *_, **__: nn.Sequential(nn.Flatten()))
    with pytest.raises(InputError, match="`resnet18` does not end in one linear layer"):
        build_trunk("resnet18", (3, 64, 64))


def test_images_of_another_shape_are_refused_with_the_remedy():
    with pytest.raises(InputError, match=r"takes images of shape \(3, 32, 32\), got \(3, 28, 28\): set `image_size`"):
        build_trunk("resnet18", (3, 32, 32))(images(side=28))


def test_the_seed_alone_determines_the_weights_and_nothing_else_is_drawn():
    state = torch.get_rng_state()
    first, second, other = (trunk_of("resnet18", seed=seed).state_dict() for seed in (5, 5, 6))
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())
    assert not torch.equal(first["layers.conv1.weight"], other["layers.conv1.weight"])


# Pretrained weights.


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Where torch keeps downloaded weights, here without any."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    return folder


class Touch:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


@pytest.mark.parametrize("small_image_stem", [False, True])
def test_pretrained_weights_are_those_of_torchvision_but_for_a_new_stem(cache, small_image_stem):
    torch.manual_seed(0)
    weights = torchvision.models.ResNet18_Weights.DEFAULT
    stored = get_model("resnet18").state_dict()
    torch.save(stored, cache / weights.url.rpartition("/")[2])
    trunk = build_trunk("resnet18", (3, 32, 32), TrunkParameters(small_image_stem=small_image_stem))
    initialise(trunk, seed=1, pretrained=True)
    loaded = {name.removeprefix("layers."): tensor for name, tensor in trunk.state_dict().items()}
    assert stored.keys() - loaded.keys() == {"fc.weight", "fc.bias"}
    different = {name for name, tensor in loaded.items() if not torch.equal(tensor, stored[name])}
    assert different == ({"conv1.weight"} if small_image_stem else set())


@pytest.mark.parametrize("kind", ["cut short", "runs code"])
def test_a_bad_file_of_pretrained_weights_is_one_line_and_is_not_unpickled(cache, tmp_path, kind):
    file = cache / torchvision.models.ResNet18_Weights.DEFAULT.url.rpartition("/")[2]
    if kind == "cut short":
        file.write_bytes(b"half a file")
    else:
        torch.save({"fc.bias": Touch(tmp_path / "touched")}, file)
    with pytest.raises(InputError, match="`resnet18` cannot be loaded") as caught:
        initialise(build_trunk("resnet18", (3, 32, 32)), seed=1, pretrained=True)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "touched").exists()


def test_pretrained_weights_that_cannot_be_had_are_reported_in_one_line(cache, monkeypatch):
    def unreachable(*_, **__):
        raise URLError("Name or service not known")

    monkeypatch.setattr("torch.hub.download_url_to_file", unreachable)
    with pytest.raises(InputError, match=r"`resnet18` cannot be loaded .*Name or service.* `trunk\.pretrained`"):
        initialise(build_trunk("resnet18", (3, 32, 32)), seed=1, pretrained=True)


def test_dropped_samples_are_zero_or_scaled_and_the_same_in_pieces():
    branch, layer = torch.ones(2000, 3, 2, 2), DroppedSamples(0.2)
    (dropout,) = replace_dropout(layer)
    dropout.set_counter(seed=5, first=0)
    dropped = layer(branch)
    kept = dropped[:, 0, 0, 0] != 0
    # Five standard deviations.
    assert float(kept.float().mean()) == pytest.approx(0.8, abs=5 * (0.8 * 0.2 / 2000) ** 0.5)
    torch.testing.assert_close(dropped, kept[:, None, None, None] * branch / 0.8)
    dropout.set_counter(seed=5, first=700)
    assert torch.equal(layer(branch[700:]), dropped[700:])
    assert layer.eval()(branch).equal(branch)


@pytest.fixture(scope="module")
def squeezenet_state():
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return torchvision.models.squeezenet1_1(num_classes=3).state_dict()


def trunk_with(file, network="squeezenet1_1", side=64):
    return build_trunk(network, (3, side, side), TrunkParameters(weights=str(file)))


@pytest.mark.parametrize("name", ["weights.pth", "weights.safetensors"])
def test_weights_of_a_file_are_taken_but_for_the_last_layer(name, squeezenet_state, tmp_path):
    file = tmp_path / name
    if file.suffix == ".pth":
        torch.save({"state_dict": squeezenet_state}, file)
    else:
        safetensors.torch.save_file(squeezenet_state, file)
    trunk = trunk_with(file)
    initialise(trunk, seed=1, pretrained=True)
    own = trunk.layers.state_dict()
    assert own and all(torch.equal(tensor, squeezenet_state[name]) for name, tensor in own.items())
    initialise(trunk, seed=1)
    assert not torch.equal(trunk.layers.state_dict()["features.0.weight"], squeezenet_state["features.0.weight"])


def test_the_stem_for_small_images_is_never_one_of_a_file(tmp_path):
    state = torchvision.models.resnet18().state_dict()
    torch.save({name: tensor for name, tensor in state.items() if "num_batches" not in name}, tmp_path / "resnet18.pth")
    trunk = trunk_with(tmp_path / "resnet18.pth", "resnet18", side=32)
    initialise(trunk, seed=1, pretrained=True)
    assert trunk.layers.conv1.kernel_size == (3, 3)
    assert torch.equal(trunk.layers.state_dict()["layer4.1.conv2.weight"], state["layer4.1.conv2.weight"])


def test_a_file_that_is_not_the_networks_weights_is_refused_in_one_line(squeezenet_state, tmp_path):
    def refusal(content):
        torch.save(content, tmp_path / "file.pth")
        with pytest.raises(InputError) as refused:
            initialise(trunk_with(tmp_path / "file.pth"), seed=1, pretrained=True)
        assert "\n" not in str(refused.value)
        return str(refused.value)

    assert "has no features.0.weight and" in refusal({"classifier.1.bias": torch.zeros(3)})
    assert "has a_layer;" in refusal({**squeezenet_state, "a_layer": torch.zeros(1)})
    assert "another shape of features.0.bias;" in refusal({**squeezenet_state, "features.0.bias": torch.zeros(1)})
    assert "no names with tensors" in refusal([1, 2])
    # Nothing of a file is run.
    assert "cannot be read" in refusal({"code": Path})
    with pytest.raises(InputError, match="are not there: name a file"):
        initialise(trunk_with(tmp_path / "none.safetensors"), seed=1, pretrained=True)


def test_random_weights_are_not_frozen():
    with pytest.raises(ValidationError, match="set `pretrained: true`, or `weights`"):
        TrunkParameters(frozen=True)


@pytest.mark.parametrize("prefix", ["module.", "model.", "_orig_mod.", "_orig_mod.module."])
def test_weights_of_what_a_network_was_wrapped_in_are_its_own(prefix, squeezenet_state, tmp_path):
    wrapped = {prefix + name: tensor for name, tensor in squeezenet_state.items()}
    torch.save({"state_dict": wrapped}, tmp_path / "wrapped.pth")
    trunk = trunk_with(tmp_path / "wrapped.pth")
    initialise(trunk, seed=1, pretrained=True)
    own = trunk.layers.state_dict()
    assert own and all(torch.equal(tensor, squeezenet_state[name]) for name, tensor in own.items())
    # Not all names begin so: they are the network's.
    assert unwrapped({**wrapped, "head": torch.zeros(1)}).keys() == {*wrapped, "head"}
