"""Hand-crafted features from images to the table, for both descriptors, on a few generated images."""

import numpy as np
import pandas as pd
import pytest
import torch
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Pipeline
from kedro.runner import SequentialRunner

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash import Experiment, HashLayerInitParameters, LabelledFeatures, Run, initialise_hash_layer
from deephash_pipeline.deephash.initialise import initialise_on_raw_features
from deephash_pipeline.images.descriptors.gist import GistParameters, gist
from deephash_pipeline.images.descriptors.hand_crafted import DESCRIPTORS, HandCraftedParameters
from deephash_pipeline.pipeline_registry import register_pipelines
from deephash_pipeline.pipelines.descriptor_extraction.nodes import describe_images, learn_vocabulary
from deephash_pipeline.pipelines.grid import METHODS, PAPER_METHODS, compared_cells, on_descriptor
from deephash_pipeline.pipelines.hand_crafted.nodes import initialise_and_encode, tabulate_features
from deephash_pipeline.pipelines.shared.fitting import BaselineParameters
from deephash_pipeline.pipelines.shared.searching import Sets

STAGES = {name: register_pipelines()[name] for name in ("descriptor_extraction", "hand_crafted")}
EXPERIMENT = Experiment(benchmark="waves", network="lenet", seed=7, device="cpu")
CLASSES = ["upright", "level", "dots"]
SPLITS = ("training", "validation", "query")
SETTINGS = {
    "gist": {"blocks": 3, "orientations_per_scale": [4, 2]},
    "sift_bag": {"words": 40, "cell_sizes": [2, 4], "step": 4, "vocabulary_images": 20, "descriptors_per_image": 30},
}
BASELINES = {"mlh": {"stages": 4, "batches_per_stage": 20}, "ksh": {"anchors": 20, "iterations": 20}}
INIT = HashLayerInitParameters.model_validate({"training": {"epochs": 4, "batch_size": 12, "learning_rate": 0.05}})
ON_DESCRIPTORS = [on_descriptor(cell) for cell in compared_cells()]


def textures(count, seed):
    """Waves of 28 x 28 pixels that run across, down, or both ways, of random phase, in noise."""
    generator = np.random.default_rng(seed)
    labels = np.arange(count, dtype=np.int64) % len(CLASSES)
    across, down = np.sin(2 * np.pi * (np.arange(28) + generator.uniform(0, 7, (2, count, 1))) / 7)
    across[labels == 1], down[labels == 0] = 1, 1
    images = 128 + 70 * across[:, np.newaxis, :] * down[:, :, np.newaxis] + generator.normal(0, 10, (count, 28, 28))
    return np.rint(images).clip(0, 255).astype(np.uint8)[:, np.newaxis], labels


IMAGES = dict(zip(SPLITS, (textures(48, 0), textures(6, 1), textures(15, 2)), strict=True))
TRAINING_IMAGES, TRAINING_LABELS = IMAGES["training"]


def choose(descriptor):
    return HandCraftedParameters.model_validate({"descriptor": descriptor, **SETTINGS})


def figures(method, code_length, value):
    return {"method": method, "code_length": code_length, "mean_average_precision": value}


def run(parameters, seed=7):
    """Run both stages in memory, with one cell of the grid evaluated, and load all that no other node reads."""
    given = {f"{split}_images": images for split, (images, _) in IMAGES.items()}
    given |= {f"{split}_labels": labels for split, (_, labels) in IMAGES.items()}
    given |= {f"params:cells.{cell.namespace}": cell for cell in (*compared_cells(), *ON_DESCRIPTORS)}
    given |= {f"descriptor_deephash_pretrained.b{bits}.checkpoints": None for bits in (16, 32)}
    given |= {
        "class_names": CLASSES,
        "evaluated_cells": {"itq/b16/metrics.json": figures("itq", 16, 0.75)},
        "params:hand_crafted": parameters,
        "params:hash_layer_init": INIT,
        "params:baseline_hashing": BaselineParameters.model_validate(BASELINES),
        "params:experiment": EXPERIMENT.model_copy(update={"seed": seed}),
        "params:experiment.seed": seed,
        "params:method_names.paper": {method: METHODS[method] for method in PAPER_METHODS},
        "params:protocol": "paper",
    }
    stages = Pipeline(list(STAGES.values()))
    given = {name: given[name] for name in stages.inputs()}
    outputs = SequentialRunner().run(stages, DataCatalog({name: MemoryDataset(value) for name, value in given.items()}))
    return {name: dataset.load() for name, dataset in outputs.items()}


@pytest.fixture(scope="module", params=list(DESCRIPTORS))
def descriptor(request):
    return str(request.param)


@pytest.fixture(scope="module")
def results(descriptor):
    return run(choose(descriptor))


# The stages, as Kedro wires them.


def test_nothing_of_hand_crafted_features_runs_in_the_full_pipeline():
    full = register_pipelines()["full"]
    for stage in STAGES.values():
        assert not full.all_outputs() & stage.all_outputs()
        assert not {node.func.__name__ for node in full.nodes} & {
            function.__name__ for function in (describe_images, learn_vocabulary, initialise_on_raw_features)
        }


def test_a_cell_on_the_descriptor_is_made_alone_by_its_namespace():
    for cell in ON_DESCRIPTORS:
        made = STAGES["hand_crafted"].only_nodes_with_namespaces([f"hand_crafted.{cell.namespace}"]).all_outputs()
        assert {f"{cell.namespace}.{name}" for name in ("encoder", "codes", "metrics")} <= made
        assert all(name.startswith(f"{cell.namespace}.") for name in made)


def test_words_are_learned_from_nothing_but_the_training_images():
    (node,) = [node for stage in STAGES.values() for node in stage.nodes if node.short_name == "learn_vocabulary"]
    assert not [name for name in node.inputs if name.startswith(("query", "validation"))]


def test_a_hash_layer_on_a_descriptor_is_learned_without_the_queries():
    raw = np.random.default_rng(0).normal(size=(len(TRAINING_LABELS), 20)).astype(np.float32)
    run = Run(EXPERIMENT, Cell(method="descriptor_deephash_pretrained", code_length=16))
    features = LabelledFeatures(raw, TRAINING_LABELS, CLASSES)
    made = [initialise_and_encode(features, INIT, run, Sets(query, raw, raw[:3])) for query in (raw, 0 * raw[:5])]
    first, second = (encoder.arrays() for encoder, _, _ in made)
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
    assert [len(codes.query) for _, _, codes in made] == [len(raw), 5]


# From images to the table.


def test_every_cell_on_the_descriptor_beats_chance(results):
    table = results["hand_crafted_table"]
    measured = table[(table["feature"] != "CNN") & (table["method"] != METHODS["lsh"])]["measured"]
    assert len(measured) == 10
    # Three classes of equal size; 48 images in the database.
    assert measured.between(0.4, 1).all()


def test_the_table_has_a_row_for_each_feature_method_and_code_length(results, descriptor):
    table = results["hand_crafted_table"]
    assert list(table) == ["feature", "method", "code_length", "measured", "published", "difference"]
    assert table["feature"].unique().tolist() == [DESCRIPTORS[descriptor], "CNN"]
    for _, half in table.groupby("feature"):
        wanted = [(METHODS[cell.method], cell.bits) for cell in compared_cells()]
        assert list(zip(half["method"], half["code_length"], strict=True)) == wanted


def test_a_cell_of_the_grid_that_was_not_evaluated_is_left_empty(results):
    table = results["hand_crafted_table"]
    network = table[table["feature"] == "CNN"].set_index(["method", "code_length"])["measured"]
    assert network[METHODS["itq"], 16] == 0.75
    assert network.notna().sum() == 1
    assert table["published"].isna().all()


def test_the_same_seed_gives_the_same_metrics_and_another_seed_others(results, descriptor):
    again, other = (run(choose(descriptor), seed) for seed in (7, 8))
    assert set(again) == set(results)
    tables = {name: content for name, content in results.items() if isinstance(content, pd.DataFrame)}
    assert "hand_crafted_table" in tables
    for name, content in tables.items():
        pd.testing.assert_frame_equal(again[name], content, check_exact=True, obj=name)
    assert not other["hand_crafted_table"].equals(results["hand_crafted_table"])


# Descriptors.


def test_gist_needs_no_words():
    words = learn_vocabulary(TRAINING_IMAGES, choose("gist"), EXPERIMENT)
    described = describe_images(TRAINING_IMAGES, words, choose("gist"), EXPERIMENT)
    assert len(words) == 0
    expected = gist(TRAINING_IMAGES, GistParameters.model_validate(SETTINGS["gist"]), torch.device("cpu"))
    np.testing.assert_array_equal(described, expected)


# Stage 2.


def test_the_hash_layer_on_a_descriptor_is_that_of_the_standardised_descriptor():
    generator = np.random.default_rng(0)
    scales = np.geomspace(1e-3, 1e3, 20)
    raw = ((generator.normal(size=(48, 20)) + TRAINING_LABELS[:, None]) * scales + 5 * scales).astype(np.float32)
    raw[:, 3] = 0.1
    deviation = raw.std(axis=0, dtype=np.float64)
    deviation[3] = 1
    standardised = ((raw - raw.mean(axis=0, dtype=np.float64)) / deviation).astype(np.float32)
    cell = Cell(method="descriptor_deephash_pretrained", code_length=16)
    encoder, history = initialise_on_raw_features(
        LabelledFeatures(raw, TRAINING_LABELS, CLASSES), INIT, Run(EXPERIMENT, cell)
    )
    _, expected, _ = initialise_hash_layer(
        LabelledFeatures(standardised, TRAINING_LABELS, CLASSES), INIT, Run(EXPERIMENT, cell)
    )
    assert (encoder.transform(raw) == expected.transform(standardised)).mean() > 0.99
    assert set(history["method"]) == {"descriptor_deephash_pretrained"}


# Published figures.


def published(benchmark, descriptor):
    experiment = EXPERIMENT.model_copy(update={"benchmark": benchmark})
    measured = [figures(cell.method, cell.bits, 0.25) for cell in ON_DESCRIPTORS]
    return tabulate_features({}, choose(descriptor), experiment, METHODS, *measured).set_index(
        ["feature", "method", "code_length"]
    )


def test_published_values_stand_beside_the_papers_descriptor():
    table = published("cifar10", "gist")
    ksh, network = table.loc[("GIST", "KSH", 16)], table.loc[("CNN", "KSH", 16)]
    assert (ksh["measured"], ksh["published"]) == (0.25, 0.2191)
    assert ksh["difference"] == pytest.approx(0.25 - 0.2191)
    assert network["published"] == 0.3958
    assert np.isnan(network["measured"])
    assert table["published"].notna().all()


def test_metrics_of_another_descriptor_stand_alone():
    table = published("cifar10", "sift_bag")
    printed = table["published"].notna().groupby("feature").sum()
    assert printed.to_dict() == {"dense SIFT bag": 0, "CNN": 12}
