"""Networks of torchvision, images larger than the network and training sets with ten crops, through the stages."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torchvision
from pydantic import ValidationError
from torch import nn

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash import (
    ClassifierRun,
    Experiment,
    FineTuningParameters,
    LabelledImages,
    PreTrainingParameters,
    Run,
    TrainingSet,
)
from deephash_pipeline.deephash.fine_tune import PreTrainedWeights, build_network, fine_tune, fit_hash_layer
from deephash_pipeline.deephash.pretrain import extract_features, pretrain
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.images.statistics import pixel_statistics
from deephash_pipeline.networks import build_trunk
from deephash_pipeline.pipelines.fine_tuning.nodes import encode_images
from deephash_pipeline.pipelines.shared.searching import Sets
from deephash_pipeline.project.datasets import TensorsDataset
from deephash_pipeline.retrieval import pack_bits

CELL = Cell(method="deephash_random_start", code_length=12)
CLASSES = ["dark", "middle", "bright"]


def experiment(network="lenet", **trunk):
    return Experiment.model_validate(
        {"benchmark": "shades", "network": network, "seed": 7, "device": "cpu", "trunk": trunk}
    )


def shades(side, count=12):
    generator = np.random.default_rng(0)
    labels = np.arange(count, dtype=np.int64) % len(CLASSES)
    noise = generator.integers(0, 90, (count, 1, side, side))
    return (noise + 80 * labels[:, None, None, None]).astype(np.uint8), labels


def stage_one(**changes):
    training = {"epochs": 1, "batch_size": 12, "learning_rate": 0.01, **changes.pop("training", {})}
    return PreTrainingParameters.model_validate({"training": training, **changes})


def trained_classifier(images, labels, parameters, chosen):
    return pretrain(
        training_set(images, labels), LabelledImages(images[:0], labels[:0]), parameters, ClassifierRun(chosen)
    )


def training_set(images, labels):
    return TrainingSet(images, labels, pixel_statistics(images), CLASSES)


def test_a_resnet_trains_is_saved_and_encodes_by_its_running_statistics(tmp_path):
    images, labels = shades(16)
    chosen = experiment("resnet18")
    weights, _, history, _ = trained_classifier(images, labels, stage_one(), chosen)
    assert np.isfinite(history["loss"]).all()
    assert weights["layers.bn1.running_mean"].any()
    stored = TensorsDataset(filepath=str(tmp_path / "trunk.safetensors"))
    stored.save(weights)
    statistics = pixel_statistics(images)
    z = extract_features(images, statistics, stored.load(), chosen)
    alone = extract_features(images[3:4], statistics, weights, chosen)
    assert z.shape == (12, 512)
    # With the statistics of a batch, an image by itself would have another z.
    np.testing.assert_allclose(alone[0], z[3], rtol=1e-3, atol=1e-4)


def test_pretrained_weights_are_for_stage_one_and_random_initialisation_stays_random(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    stored = torchvision.models.mobilenet_v3_small().state_dict()
    file = torchvision.models.MobileNet_V3_Small_Weights.DEFAULT.url.rpartition("/")[2]
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    torch.save(stored, tmp_path / "hub" / "checkpoints" / file)
    images, labels = shades(32)
    chosen = experiment("mobilenet_v3_small", pretrained=True)
    weights, *_ = trained_classifier(images, labels, stage_one(training={"learning_rate": 1e-30}), chosen)
    assert torch.equal(weights["layers.features.0.0.weight"], stored["features.0.0.weight"])
    parameters = FineTuningParameters.model_validate({"training": stage_one().training})
    random = build_network(training_set(images, labels), parameters, Run(chosen, CELL)).trunk.state_dict()
    assert not torch.equal(random["layers.features.0.0.weight"], stored["features.0.0.weight"])


def test_the_scale_of_random_weights_is_found_with_the_statistics_of_a_batch():
    images, labels = shades(32)
    chosen = experiment("mobilenet_v3_small")
    parameters = FineTuningParameters.model_validate({"training": stage_one().training})
    network = build_network(training_set(images, labels), parameters, Run(chosen, CELL))
    statistics = pixel_statistics(images)
    fit_hash_layer(network, ImageInputs(images, statistics, torch.device("cpu")), parameters, Run(chosen, CELL))
    # z by the running statistics that a fresh network has is so small that no weight could make up for it.
    assert extract_features(images, statistics, network.trunk.state_dict(), chosen).std() < 1e-3
    for layer in network.trunk.modules():
        layer.train(isinstance(layer, nn.BatchNorm2d))
    pixels = ImageInputs(images, statistics, torch.device("cpu")).batch(np.arange(12))
    torch.testing.assert_close(network(pixels).std(0, unbiased=False), torch.ones(12), rtol=1e-3, atol=0)


@pytest.mark.parametrize("initial_hash_layer", ["pre_trained", "random"])
def test_a_frozen_trunk_keeps_its_statistics_and_has_no_dropout(initial_hash_layer):
    images, labels = shades(32)
    chosen = experiment("mobilenet_v3_small")
    weights, *_ = trained_classifier(images, labels, stage_one(), chosen)
    parameters = FineTuningParameters.model_validate(
        {"training": stage_one().training, "frozen_trunk": True, "initial_hash_layer": initial_hash_layer}
    )
    layer = build_network(training_set(images, labels), parameters, Run(chosen, CELL)).hash_layer.state_dict()
    start = PreTrainedWeights(weights, layer)
    hasher, _ = fine_tune(training_set(images, labels), parameters, Run(chosen, CELL), start)
    assert all(torch.equal(hasher.trunk.state_dict()[name], tensor) for name, tensor in weights.items())
    network = build_network(training_set(images, labels), parameters, Run(chosen, CELL)).train()
    assert not any(layer.training for layer in network.trunk.modules())
    assert network.hash_layer.training


@pytest.mark.parametrize("initial_hash_layer", ["pre_trained", "random"])
def test_on_a_frozen_trunk_the_hash_layer_learns_from_z_and_codes_are_those_of_z(initial_hash_layer):
    images, labels = shades(32)
    chosen = experiment("mobilenet_v3_small", weights="a file", frozen=True)
    weights = build_trunk("mobilenet_v3_small", (3, 32, 32)).state_dict()
    z = np.random.default_rng(0).normal(size=(len(labels), 1024)).astype(np.float32)
    parameters = FineTuningParameters.model_validate(
        {"training": {**dict(stage_one().training), "epochs": 40}, "initial_hash_layer": initial_hash_layer}
    )
    layer = build_network(training_set(images, labels), parameters, Run(chosen, CELL)).hash_layer.state_dict()
    start = PreTrainedWeights(weights, layer, z=z)
    blank = replace(training_set(images, labels), images=np.zeros_like(images))
    hasher, history = fine_tune(blank, parameters, Run(chosen, CELL), start)
    assert history["loss"].iloc[-1] < history["loss"].iloc[0]
    assert all(torch.equal(hasher.trunk.state_dict()[name], tensor) for name, tensor in weights.items())
    codes = encode_images(hasher, chosen, Sets(*3 * [images]), Sets(z[:2], z, z[:0]))
    np.testing.assert_array_equal(codes.database, pack_bits(hasher.encoder.transform(z)))
    assert len(np.unique(codes.database, axis=0)) > 1


def test_the_images_that_scale_a_random_hash_layer_go_through_the_trunk_in_chunks():
    images, labels = shades(28)
    network = build_network(
        training_set(images, labels), FineTuningParameters(training=stage_one().training), Run(experiment(), CELL)
    )
    counts = []
    network.trunk.register_forward_pre_hook(lambda module, inputs: counts.append(len(inputs[0])))
    scales = []
    for chunk_size in (None, 5):
        training = {**dict(stage_one().training), "chunk_size": chunk_size}
        parameters = FineTuningParameters.model_validate({"training": training})
        inputs = ImageInputs(images, pixel_statistics(images), torch.device("cpu"))
        fit_hash_layer(network, inputs, parameters, Run(experiment(), CELL))
        scales.append({name: tensor.clone() for name, tensor in network.hash_layer.state_dict().items()})
    assert counts == [12, 5, 5, 2]
    torch.testing.assert_close(scales[1], scales[0])


def test_a_network_of_torchvision_is_chosen_by_name_and_its_block_is_for_it_alone():
    assert experiment("convnext_tiny", image_size=64).trunk.image_size == 64
    with pytest.raises(ValidationError, match="`trunk` is for networks of torchvision and timm, and `lenet` is none"):
        experiment("lenet", pretrained=True)
    with pytest.raises(ValidationError, match="unknown network `resnet`: choose one of caffenet"):
        experiment("resnet")


def test_a_configuration_tells_of_options_only_where_they_change_something():
    plain = ClassifierRun(experiment()).configuration(stage_one())
    assert not [name for name in plain if "trunk" in name]
    assert ClassifierRun(experiment()).configuration(stage_one(augmentation={"shift_pixels": 1})) == {
        **plain,
        "augmentation.shift_pixels": 1,
    }
    assert ClassifierRun(experiment("resnet18", image_size=32)).configuration(stage_one()) == {
        **plain,
        "network": "resnet18",
        "trunk.pretrained": False,
        "trunk.small_image_stem": "auto",
        "trunk.image_size": 32,
    }
