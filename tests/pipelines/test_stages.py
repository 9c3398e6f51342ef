from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from kedro.io import DataCatalog, MemoryDataset
from kedro.runner import SequentialRunner
from numpy.typing import NDArray
from pydantic import ValidationError
from torch import Tensor

from deephash_pipeline.errors import InputError
from deephash_pipeline.grid import DEEP_RIVALS, Cell
from deephash_pipeline.hashing import ITQ, LSH, OneOfC
from deephash_pipeline.images.collection import ImageCollection, ImageSet
from deephash_pipeline.losses import ExponentiatedLossParameters
from deephash_pipeline.pipelines import baseline_hashing, evaluation
from deephash_pipeline.pipelines.baseline_hashing.nodes import BaselineParameters, fit_hash_function, make_yardstick
from deephash_pipeline.pipelines.cnn_pretraining.nodes import PreTrainingParameters, pre_train
from deephash_pipeline.pipelines.data_ingestion.nodes import IngestionParameters, measure_pixels, split_images
from deephash_pipeline.pipelines.encoding import encode_z
from deephash_pipeline.pipelines.experiment import ExperimentParameters
from deephash_pipeline.pipelines.feature_extraction.nodes import extract_z
from deephash_pipeline.pipelines.fine_tuning.nodes import (
    FineTuningParameters,
    encode_images,
    fine_tune,
    train_from_random_initialisation,
)
from deephash_pipeline.pipelines.hash_layer_init.nodes import HashLayerInitParameters, initialise_hash_layer
from deephash_pipeline.retrieval import unpack_bits

EXPERIMENT = ExperimentParameters(benchmark="squares", network="lenet", seed=7, device="cpu")
CLASSES = ["left", "middle", "right"]
CELL = Cell(method="fine_tuning", code_length=12)
NO_IMAGES = np.empty((0, 1, 28, 28), dtype=np.uint8)
NO_LABELS = np.empty(0, dtype=np.int64)


def squares(count: int, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images of a bright bar at the left, in the middle or at the right, in noise."""
    generator = np.random.default_rng(seed)
    labels = np.arange(count, dtype=np.int64) % len(CLASSES)
    images = generator.integers(0, 90, size=(count, 1, 28, 28)).astype(np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[0, 4:24, 9 * label : 9 * label + 8] += 150
    return images, labels


IMAGES, LABELS = squares(36, seed=0)
QUERY_IMAGES, QUERY_LABELS = squares(9, seed=1)
STATISTICS = measure_pixels(IMAGES)
TRAINING = {"epochs": 2, "batch_size": 12, "learning_rate": 0.01}


def fine_tuning_parameters(**training: Any) -> FineTuningParameters:
    return FineTuningParameters.model_validate({"training": {**TRAINING, **training}})


@pytest.fixture(scope="module")
def classifier() -> tuple[dict[str, Tensor], dict[str, Tensor], pd.DataFrame]:
    parameters = PreTrainingParameters.model_validate({"training": {**TRAINING, "epochs": 4}})
    return pre_train(IMAGES, LABELS, NO_IMAGES, NO_LABELS, STATISTICS, CLASSES, parameters, EXPERIMENT)


@pytest.fixture(scope="module")
def trunk_weights(classifier: tuple[dict[str, Tensor], dict[str, Tensor], pd.DataFrame]) -> dict[str, Tensor]:
    return classifier[0]


@pytest.fixture(scope="module")
def softmax_weights(classifier: tuple[dict[str, Tensor], dict[str, Tensor], pd.DataFrame]) -> dict[str, Tensor]:
    return classifier[1]


@pytest.fixture(scope="module")
def z(trunk_weights: dict[str, Tensor]) -> NDArray[np.float32]:
    return extract_z(IMAGES, STATISTICS, trunk_weights, EXPERIMENT)


@pytest.fixture(scope="module")
def query_z(trunk_weights: dict[str, Tensor]) -> NDArray[np.float32]:
    return extract_z(QUERY_IMAGES, STATISTICS, trunk_weights, EXPERIMENT)


def bits_of(codes: NDArray[np.uint8], code_length: int) -> NDArray[np.bool_]:
    return unpack_bits(codes, code_length)


# Data ingestion.


def test_images_are_split_into_what_the_catalog_names() -> None:
    everything = ImageSet(IMAGES, LABELS, [f"square {row}" for row in range(len(LABELS))])
    parameters = IngestionParameters(query_count=9, validation_share=0.25)
    artefacts = split_images(ImageCollection({"all": everything}, CLASSES), parameters, EXPERIMENT)
    assert set(artefacts) == {
        "class_names",
        "quarantined_images",
        *(f"{split}_{kind}" for split in ("training", "validation", "query") for kind in ("images", "labels", "ids")),
    }
    assert artefacts["class_names"] == CLASSES
    assert artefacts["quarantined_images"].columns.tolist() == ["split", "id", "reason"]
    assert artefacts["quarantined_images"].empty
    assert [len(artefacts[f"{split}_ids"]) for split in ("training", "validation", "query")] == [20, 7, 9]
    ids = [name for split in ("training", "validation", "query") for name in artefacts[f"{split}_ids"]]
    assert sorted(ids) == sorted(everything.ids)


# Pre-training.


def test_pre_training_has_a_row_of_figures_for_each_epoch(
    classifier: tuple[dict[str, Tensor], dict[str, Tensor], pd.DataFrame],
) -> None:
    history = classifier[2]
    assert history["epoch"].tolist() == [1, 2, 3, 4]
    assert set(history["stage"]) == {"softmax_pre_training"}
    assert history["loss"].iloc[-1] < history["loss"].iloc[0]
    assert "validation_accuracy" not in history


def test_pre_training_watches_validation_images_where_there_are_some() -> None:
    parameters = PreTrainingParameters.model_validate({"training": TRAINING})
    _, _, history = pre_train(IMAGES, LABELS, QUERY_IMAGES, QUERY_LABELS, STATISTICS, CLASSES, parameters, EXPERIMENT)
    assert history["validation_accuracy"].between(0, 1).all()


def test_the_same_seed_trains_the_same_classifier(trunk_weights: dict[str, Tensor]) -> None:
    parameters = PreTrainingParameters.model_validate({"training": {**TRAINING, "epochs": 4}})
    again, _, _ = pre_train(IMAGES, LABELS, NO_IMAGES, NO_LABELS, STATISTICS, CLASSES, parameters, EXPERIMENT)
    assert all(torch.equal(again[name], tensor) for name, tensor in trunk_weights.items())


# Features.


def test_z_of_an_image_is_the_same_alone_and_among_others(
    z: NDArray[np.float32], trunk_weights: dict[str, Tensor]
) -> None:
    alone = extract_z(IMAGES[5:6], STATISTICS, trunk_weights, EXPERIMENT)
    assert z.shape == (36, 500)
    assert z.dtype == np.float32
    np.testing.assert_allclose(alone[0], z[5], rtol=1e-4, atol=1e-5)


def test_no_images_have_no_z_of_the_same_width(trunk_weights: dict[str, Tensor]) -> None:
    assert extract_z(NO_IMAGES, STATISTICS, trunk_weights, EXPERIMENT).shape == (0, 500)


# Hash functions on z.


@pytest.mark.parametrize("method", ["lsh", "pcah", "itq", "sh"])
def test_a_method_is_fitted_at_the_code_length_of_its_cell(z: NDArray[np.float32], method: str) -> None:
    cell = Cell(method=method, code_length=16)
    encoder = fit_hash_function(z, LABELS, cell, BaselineParameters.model_validate({}), EXPERIMENT)
    assert encoder.encode(z).shape == (36, 16)


def test_the_seed_of_the_experiment_decides_the_code(z: NDArray[np.float32]) -> None:
    def code(seed: int) -> NDArray[np.bool_]:
        experiment = EXPERIMENT.model_copy(update={"seed": seed})
        cell = Cell(method="lsh", code_length=32)
        return fit_hash_function(z, LABELS, cell, BaselineParameters.model_validate({}), experiment).encode(z)

    np.testing.assert_array_equal(code(1), code(1))
    assert (code(1) != code(2)).any()


def test_a_block_of_parameters_reaches_its_method(z: NDArray[np.float32]) -> None:
    parameters = BaselineParameters.model_validate({"lsh": {"centre": True}})
    encoder = fit_hash_function(z, LABELS, Cell(method="lsh", code_length=12), parameters, EXPERIMENT)
    assert isinstance(encoder, LSH)
    assert encoder.threshold_.any()


def test_database_and_queries_are_hashed_by_the_same_function(z: NDArray[np.float32]) -> None:
    encoder = ITQ(12, seed=1).fit(z)
    codes = encode_z(encoder, z, z[:7], z[::-1])
    assert codes.code_length == 12
    np.testing.assert_array_equal(codes.database, codes.query[::-1])
    np.testing.assert_array_equal(codes.validation, codes.database[:7])
    np.testing.assert_array_equal(bits_of(codes.database, 12), encoder.encode(z))


def test_no_validation_images_have_no_codes(z: NDArray[np.float32]) -> None:
    assert encode_z(LSH(12).fit(z), z, z[:0], z).validation.shape == (0, 2)


def test_the_code_of_the_yardstick_is_one_at_the_predicted_class(
    z: NDArray[np.float32], softmax_weights: dict[str, Tensor]
) -> None:
    yardstick = make_yardstick(softmax_weights)
    bits = bits_of(encode_z(yardstick, z, z[:0], z).query, len(CLASSES))
    logits = torch.from_numpy(z) @ softmax_weights["weight"].T + softmax_weights["bias"]
    assert isinstance(yardstick, OneOfC)
    assert (bits.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(bits.argmax(axis=1), logits.argmax(dim=1).numpy())


# The hash layer.


@pytest.fixture(scope="module")
def initialised(z: NDArray[np.float32]) -> tuple[dict[str, Tensor], Any, pd.DataFrame]:
    cell = Cell(method="pre_training", code_length=12)
    parameters = HashLayerInitParameters.model_validate({"training": TRAINING})
    return initialise_hash_layer(z, LABELS, CLASSES, cell, parameters, EXPERIMENT)


def test_the_initial_code_is_the_sign_of_the_initial_hash_layer(
    initialised: tuple[dict[str, Tensor], Any, pd.DataFrame], z: NDArray[np.float32]
) -> None:
    layer, encoder, history = initialised
    u = z.astype(np.float64) @ layer["weight"].numpy().astype(np.float64).T
    np.testing.assert_array_equal(encoder.encode(z), u >= 0)
    assert history[["method", "code_length", "stage"]].drop_duplicates().values.tolist() == [
        ["pre_training", 12, "hash_layer_initialisation"]
    ]


def test_the_scale_of_the_hash_layer_does_not_hang_on_the_class_that_a_folder_lists_first() -> None:
    generator = np.random.default_rng(0)
    z = generator.normal(size=(1000, 16)).astype(np.float32)
    z[:500] = 1 + 1e-4 * z[:500]
    still = {"epochs": 1, "batch_size": 100, "learning_rate": 1e-30}
    stored, _, _ = initialise_hash_layer(
        z,
        np.repeat([0, 1], 500),
        ["blank", "full"],
        Cell(method="pre_training", code_length=12),
        HashLayerInitParameters.model_validate({"training": still}),
        EXPERIMENT,
    )
    assert 0.5 < (z @ stored["weight"].numpy().T).std(0).mean() < 2


def test_fine_tuning_starts_from_both_pre_training_stages(
    initialised: tuple[dict[str, Tensor], Any, pd.DataFrame],
    trunk_weights: dict[str, Tensor],
    z: NDArray[np.float32],
    query_z: NDArray[np.float32],
) -> None:
    """With steps too small to turn a sign, the code is that of pre-training."""
    layer, encoder, _ = initialised
    parameters = fine_tuning_parameters(learning_rate=1e-12)
    tuned_trunk, tuned_encoder, _ = fine_tune(
        IMAGES, LABELS, STATISTICS, trunk_weights, layer, CELL, parameters, EXPERIMENT
    )
    tuned = encode_images(tuned_encoder, tuned_trunk, IMAGES, NO_IMAGES, QUERY_IMAGES, STATISTICS, EXPERIMENT)
    before = encode_z(encoder, z, z[:0], query_z)
    np.testing.assert_array_equal(tuned.database, before.database)
    np.testing.assert_array_equal(tuned.query, before.query)


def test_fine_tuning_changes_every_layer(
    initialised: tuple[dict[str, Tensor], Any, pd.DataFrame], trunk_weights: dict[str, Tensor]
) -> None:
    layer, encoder, _ = initialised
    tuned_trunk, tuned_encoder, history = fine_tune(
        IMAGES, LABELS, STATISTICS, trunk_weights, layer, CELL, fine_tuning_parameters(), EXPERIMENT
    )
    assert history["epoch"].tolist() == [1, 2]
    assert all(not torch.equal(tuned_trunk[name], tensor) for name, tensor in trunk_weights.items())
    assert (tuned_encoder.arrays()["projection"] != encoder.arrays()["projection"]).any()


RIVALS: list[dict[str, Any]] = [
    {"loss": {"name": "cnnh"}},
    {"loss": {"name": "cnnh_plus"}, "initial_hash_layer": "random"},
    {
        "loss": {"name": "dnnh"},
        "hash_layer": {"features_per_bit": 4, "bias": True},
        "initial_hash_layer": "random",
    },
    {"loss": {"name": "dpsh"}, "hash_layer": {"centring": True, "scale": 2.0}},
    {"loss": {"name": "hashnet"}, "hash_layer": {"bias": True}},
    {"loss": {"name": "greedy_hash"}, "hash_layer": {"centring": True, "scale": 2.0}, "initial_hash_layer": "random"},
    {"loss": {"name": "csq"}, "initial_hash_layer": "random"},
]


def test_every_rival_is_fine_tuned_here() -> None:
    assert [block["loss"]["name"] for block in RIVALS] == list(DEEP_RIVALS)


@pytest.mark.parametrize("block", RIVALS, ids=lambda block: str(block["loss"]["name"]))
def test_the_loss_of_a_rival_is_taken_by_name_and_trains_all_layers(
    initialised: tuple[dict[str, Tensor], Any, pd.DataFrame],
    trunk_weights: dict[str, Tensor],
    block: dict[str, Any],
) -> None:
    parameters = FineTuningParameters.model_validate({"training": TRAINING, **block})
    cell = Cell(method=block["loss"]["name"], code_length=12)
    trunk, encoder, history = fine_tune(
        IMAGES, LABELS, STATISTICS, trunk_weights, initialised[0], cell, parameters, EXPERIMENT
    )
    codes = encode_images(encoder, trunk, IMAGES, NO_IMAGES, QUERY_IMAGES, STATISTICS, EXPERIMENT)
    assert codes.database.shape == (36, 2)
    assert set(trunk) == set(trunk_weights)
    assert all(not torch.equal(trunk[name], tensor) for name, tensor in trunk_weights.items())
    assert history[["method", "stage"]].drop_duplicates().values.tolist() == [[cell.method, "fine_tuning"]]
    assert np.isfinite(history[["loss", "u_standard_deviation", "quantisation_error"]].to_numpy()).all()


def test_a_loss_without_a_name_is_the_papers() -> None:
    parameters = FineTuningParameters.model_validate({"training": TRAINING, "loss": {"temperature": 2.0}})
    assert parameters.loss == ExponentiatedLossParameters(temperature=2.0)
    assert fine_tuning_parameters().loss == ExponentiatedLossParameters()


def test_an_unknown_loss_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValidationError, match="'exponentiated', 'cnnh', 'cnnh_plus'"):
        FineTuningParameters.model_validate({"training": TRAINING, "loss": {"name": "dsh"}})


def test_a_divided_hash_layer_is_not_one_of_stage_two() -> None:
    with pytest.raises(ValidationError, match="needs `initial_hash_layer: random`"):
        FineTuningParameters.model_validate({"training": TRAINING, "hash_layer": {"features_per_bit": 50}})


def test_a_random_hash_layer_forgets_that_of_stage_two(
    initialised: tuple[dict[str, Tensor], Any, pd.DataFrame], trunk_weights: dict[str, Tensor]
) -> None:
    def projection(start: str, layer: dict[str, Tensor]) -> NDArray[np.float32]:
        parameters = fine_tuning_parameters(learning_rate=1e-12).model_copy(update={"initial_hash_layer": start})
        _, encoder, _ = fine_tune(IMAGES, LABELS, STATISTICS, trunk_weights, layer, CELL, parameters, EXPERIMENT)
        return encoder.arrays()["projection"]

    layer = initialised[0]
    other = {"weight": -layer["weight"]}
    np.testing.assert_array_equal(projection("random", layer), projection("random", other))
    np.testing.assert_allclose(projection("pre_trained", layer), -projection("pre_trained", other), rtol=1e-4)


def test_random_initialisation_trains_without_pre_training() -> None:
    cell = Cell(method="random_initialisation", code_length=12)
    trunk, encoder, history = train_from_random_initialisation(
        IMAGES, LABELS, STATISTICS, cell, fine_tuning_parameters(), EXPERIMENT
    )
    codes = encode_images(encoder, trunk, IMAGES, NO_IMAGES, QUERY_IMAGES, STATISTICS, EXPERIMENT)
    assert codes.database.shape == (36, 2)
    assert codes.query.shape == (9, 2)
    assert set(history["method"]) == {"random_initialisation"}


def test_training_that_diverges_is_told_in_one_line_with_its_cell_and_the_remedy(
    initialised: tuple[dict[str, Tensor], Any, pd.DataFrame], trunk_weights: dict[str, Tensor]
) -> None:
    parameters = fine_tuning_parameters(learning_rate=1e30)
    with pytest.raises(InputError) as caught:
        fine_tune(IMAGES, LABELS, STATISTICS, trunk_weights, initialised[0], CELL, parameters, EXPERIMENT)
    told = str(caught.value)
    assert "fine_tuning.b12" in told
    assert "learning_rate" in told
    assert "\n" not in told


def test_fewer_images_than_one_batch_are_refused_with_the_remedy() -> None:
    with pytest.raises(InputError, match="set `batch_size` to at most 36"):
        train_from_random_initialisation(
            IMAGES, LABELS, STATISTICS, CELL, fine_tuning_parameters(batch_size=37), EXPERIMENT
        )


def test_images_that_do_not_fit_the_network_are_refused_with_the_remedy() -> None:
    with pytest.raises(InputError, match="set `image_size`"):
        train_from_random_initialisation(
            IMAGES[..., :20, :20], LABELS, STATISTICS, CELL, fine_tuning_parameters(), EXPERIMENT
        )


# A cell from z to its figures, as Kedro wires it.


def test_a_cell_runs_from_z_to_its_figures_in_memory(z: NDArray[np.float32], query_z: NDArray[np.float32]) -> None:
    stages = (baseline_hashing.create_pipeline([12]), evaluation.create_pipeline([12]))
    cell = sum((stage.only_nodes_with_namespaces(["pcah.b12"]) for stage in stages), start=type(stages[0])([]))
    given = {
        "training_z": z,
        "validation_z": z[:0],
        "query_z": query_z,
        "training_labels": LABELS,
        "validation_labels": NO_LABELS,
        "query_labels": QUERY_LABELS,
        "params:cells.pcah.b12": Cell(method="pcah", code_length=12),
        "params:baseline_hashing": BaselineParameters.model_validate({}),
        "params:experiment": EXPERIMENT,
    }
    outputs = SequentialRunner().run(cell, DataCatalog({name: MemoryDataset(value) for name, value in given.items()}))
    metrics = outputs["pcah.b12.metrics"].load()
    assert metrics["method"] == "pcah"
    assert metrics["code_length"] == 12
    assert metrics["mean_average_precision"] > metrics["chance_level"]
