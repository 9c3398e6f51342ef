"""The stages that train a hash layer: its initialisation, and fine-tuning with every loss."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from torch import Tensor

from deephash_pipeline.errors import InputError
from deephash_pipeline.grid import DEEP_RIVALS, Cell
from deephash_pipeline.losses import ExponentiatedLossParameters
from deephash_pipeline.pipelines.encoding import encode_z
from deephash_pipeline.pipelines.fine_tuning.nodes import (
    FineTuningParameters,
    encode_images,
    fine_tune,
    train_from_random_initialisation,
)
from deephash_pipeline.pipelines.hash_layer_init.nodes import HashLayerInitParameters, initialise_hash_layer
from tests.pipelines.squares import CLASSES, EXPERIMENT, IMAGES, LABELS, NO_IMAGES, QUERY_IMAGES, STATISTICS, TRAINING

CELL = Cell(method="deephash", code_length=12)


def fine_tuning_parameters(**training: Any) -> FineTuningParameters:
    return FineTuningParameters.model_validate({"training": {**TRAINING, **training}})


# The hash layer.


@pytest.fixture(scope="module")
def initialised(z: NDArray[np.float32]) -> tuple[dict[str, Tensor], Any, pd.DataFrame]:
    cell = Cell(method="deephash_pretrained", code_length=12)
    parameters = HashLayerInitParameters.model_validate({"training": TRAINING})
    return initialise_hash_layer(z, LABELS, CLASSES, cell, parameters, EXPERIMENT)


def test_the_initial_code_is_the_sign_of_the_initial_hash_layer(
    initialised: tuple[dict[str, Tensor], Any, pd.DataFrame], z: NDArray[np.float32]
) -> None:
    layer, encoder, history = initialised
    u = z.astype(np.float64) @ layer["weight"].numpy().astype(np.float64).T
    np.testing.assert_array_equal(encoder.transform(z), u >= 0)
    assert history[["method", "code_length", "stage"]].drop_duplicates().values.tolist() == [
        ["deephash_pretrained", 12, "hash_layer_initialisation"]
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
        Cell(method="deephash_pretrained", code_length=12),
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
    cell = Cell(method="deephash_random_start", code_length=12)
    trunk, encoder, history = train_from_random_initialisation(
        IMAGES, LABELS, STATISTICS, cell, fine_tuning_parameters(), EXPERIMENT
    )
    codes = encode_images(encoder, trunk, IMAGES, NO_IMAGES, QUERY_IMAGES, STATISTICS, EXPERIMENT)
    assert codes.database.shape == (36, 2)
    assert codes.query.shape == (9, 2)
    assert set(history["method"]) == {"deephash_random_start"}


def test_training_that_diverges_is_told_in_one_line_with_its_cell_and_the_remedy(
    initialised: tuple[dict[str, Tensor], Any, pd.DataFrame], trunk_weights: dict[str, Tensor]
) -> None:
    parameters = fine_tuning_parameters(learning_rate=1e30)
    with pytest.raises(InputError) as caught:
        fine_tune(IMAGES, LABELS, STATISTICS, trunk_weights, initialised[0], CELL, parameters, EXPERIMENT)
    told = str(caught.value)
    assert "deephash.b12" in told
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
