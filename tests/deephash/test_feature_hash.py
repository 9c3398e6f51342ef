"""Codes of images without labels, from a trunk that was trained on others."""

from unittest.mock import Mock
from urllib.error import URLError

import numpy as np
import pytest
import torch
import torchvision
from pydantic import ValidationError

from deephash_pipeline import FeatureHash, ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash import ClassifierRun, Experiment, LabelledImages, PreTrainingParameters, TrainingSet
from deephash_pipeline.deephash import pretrain as pretrain_trunk
from deephash_pipeline.hashing import ITQ, KSH, LSH
from deephash_pipeline.images.statistics import pixel_statistics
from deephash_pipeline.networks import TrunkParameters
from deephash_pipeline.pipelines.baseline_hashing.nodes import make_classifier_baseline

IMAGES = np.random.default_rng(0).integers(0, 256, (24, 40, 40, 3), dtype=np.uint8)


def test_images_without_labels_get_a_hasher_that_is_saved_and_loaded(weights, tmp_path):
    hasher = FeatureHash(ITQ(12), "squeezenet1_1", weights=weights, image_size=(48, 64)).fit(IMAGES)
    codes = hasher.encode(IMAGES)
    assert codes.shape == (24, 2) and len(np.unique(codes, axis=0)) > 1
    hasher.save(tmp_path / "itq.safetensors")
    loaded = ImageHasher.load(tmp_path / "itq.safetensors")
    np.testing.assert_array_equal(loaded.encode(IMAGES), codes)
    assert loaded.description.image_shape == (3, 48, 64)
    assert not [value for value in loaded.description.trunk.values() if value == weights]
    z = hasher.features(IMAGES)
    np.testing.assert_array_equal(hasher.encoder.projection_, ITQ(12).fit(z).projection_)


def test_a_hash_function_that_needs_labels_says_so_before_any_image_is_read(weights):
    with pytest.raises(InputError, match="KSH learns from labels: pass them, or take ITQ"):
        FeatureHash(KSH(12), "squeezenet1_1", weights=weights).fit(["no such file.png"])


@pytest.mark.parametrize("wrong", ["itq", ITQ])
def test_what_is_no_hash_function_is_refused_in_one_line(wrong):
    with pytest.raises(InputError, match=r"is no hash function on features: take one such as ITQ\(48\)"):
        FeatureHash(wrong).fit(IMAGES)


def test_networks_without_pretrained_weights_and_bad_files_are_refused():
    with pytest.raises(InputError, match="no pretrained weights of `lenet`"):
        FeatureHash(LSH(12), "lenet").fit(IMAGES)
    with pytest.raises(InputError, match="call fit"):
        FeatureHash().encode(IMAGES)


def test_a_resnet_keeps_the_stem_of_its_weights_for_small_images_too(tmp_path):
    network = torchvision.models.resnet18()
    torch.save(network.state_dict(), tmp_path / "resnet18.pth")
    hasher = FeatureHash(LSH(12), "resnet18", weights=tmp_path / "resnet18.pth", image_size=(40, 40)).fit(IMAGES)
    assert torch.equal(hasher.trunk.state_dict()["layers.conv1.weight"], network.conv1.weight)
    hasher.save(tmp_path / "lsh.safetensors")
    loaded = ImageHasher.load(tmp_path / "lsh.safetensors")
    np.testing.assert_array_equal(loaded.encode(IMAGES), hasher.encode(IMAGES))
    with pytest.raises(ValidationError, match="a stem for small images is random"):
        TrunkParameters(weights="resnet18.pth", frozen=True, small_image_stem=True)


def test_weights_that_cannot_be_downloaded_are_one_line_with_a_remedy(monkeypatch):
    offline = Mock(side_effect=URLError("Name or service not known"))
    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", offline)
    with pytest.raises(InputError, match=r"check the connection .*`weights` of FeatureHash") as caught:
        FeatureHash(LSH(12), "resnet18").fit(IMAGES)
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_a_size_that_is_no_pair_is_refused_in_one_line(weights):
    with pytest.raises(InputError, match=r"image_size is 48: give height and width, such as \(64, 64\)"):
        FeatureHash(LSH(12), "squeezenet1_1", weights=weights, image_size=48).fit(IMAGES)


def test_a_frozen_trunk_is_not_trained_and_needs_no_labels(weights):
    trunk = {"weights": weights, "frozen": True, "image_size": 40}
    experiment = Experiment.model_validate(
        {"benchmark": "images", "network": "squeezenet1_1", "seed": 1, "device": "cpu", "trunk": trunk}
    )
    images, labels = IMAGES.transpose(0, 3, 1, 2), np.zeros(24, np.int64)
    training_set = TrainingSet(images, labels, pixel_statistics(images), ["unlabelled"])
    parameters = PreTrainingParameters.model_validate(
        {"training": {"epochs": 1, "batch_size": 8, "learning_rate": 0.1}}
    )
    nothing = LabelledImages(images[:0], labels[:0])
    made = pretrain_trunk(training_set, nothing, parameters, ClassifierRun(experiment))
    stored = torch.load(weights, weights_only=True)
    assert torch.equal(made.trunk["layers.features.0.weight"], stored["features.0.weight"])
    assert made.softmax == {} and made.history.empty
    with pytest.raises(InputError, match="leave out one_of_c"):
        make_classifier_baseline(made.softmax, labels)
