"""Another configuration's checkpoints are refused, or make room if their training is finished."""

import logging

import pytest
import torch

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.inputs import ImageInputs
from deephash_pipeline.training import CheckpointFolder, LabelledInputs
from deephash_pipeline.training.resuming import continuation
from tests.training.resuming.small_fine_tuning import (
    CPU,
    STATISTICS,
    AfterSaving,
    Killed,
    fine_tune,
    hash_network,
    images,
    stored,
)


def other_pixel():
    pixels, labels = images()
    pixels[31, 0, 3, 3] ^= 1
    return pixels, labels


def other_label():
    pixels, labels = images()
    labels[31] = (labels[31] + 1) % 3
    return pixels, labels


def other_weight():
    network = hash_network()
    with torch.no_grad():
        network.trunk[0].weight[0, 0, 0, 0] += 1e-6
    return network


CHANGES = [
    ({"learning_rate": 0.04}, "training.learning_rate"),
    ({"epochs": 4}, "training.epochs"),
    ({"chunk_size": 8}, "training.chunk_size"),
    ({"seed": 8}, "seed"),
    ({"configuration": {"loss.temperature": 2.0}}, "loss.temperature"),
    ({"configuration": {"network": "lenet"}}, "loss.temperature"),
    ({"network": other_weight}, "initial weights"),
    ({"network": other_weight, "seed": 8}, "seed"),
    ({"data": other_pixel}, "training set"),
    ({"data": other_label}, "training set"),
]


def changed(change):
    """Arguments of `fine_tune`, a change of those of `begun`."""
    made = {name: value() if callable(value) else value for name, value in change.items()}
    return {"configuration": {"loss.temperature": 1.0}, **made}


@pytest.mark.parametrize(("change", "name"), CHANGES)
def test_an_unfinished_training_of_another_configuration_is_refused_by_name_and_kept(tmp_path, change, name):
    with pytest.raises(Killed):
        fine_tune(AfterSaving(tmp_path, saves=4), **changed({}))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="delete the folder to start over") as caught:
        fine_tune(CheckpointFolder(tmp_path, 0), **changed(change))
    assert f"`{name}`" in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(("change", "name"), CHANGES)
def test_a_finished_training_of_another_configuration_starts_anew_and_says_so(tmp_path, caplog, change, name):
    fine_tune(CheckpointFolder(tmp_path, 30), **changed({}))
    with caplog.at_level(logging.INFO):
        result = fine_tune(CheckpointFolder(tmp_path, 30), **changed(change))
    assert result == fine_tune(**changed(change))
    assert any(f"`{name}` has changed" in record.getMessage() for record in caplog.records)
    assert stored(tmp_path)["progress"]["finished"]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_refusal_gives_both_values_or_says_which_is_lacking(tmp_path):
    with pytest.raises(Killed):
        fine_tune(AfterSaving(tmp_path, saves=1))
    with pytest.raises(InputError, match=r"`training.learning_rate` 0.05 instead of 0.04"):
        fine_tune(CheckpointFolder(tmp_path, 0), learning_rate=0.04)
    with pytest.raises(InputError, match=r"`loss.sharpness` not given instead of None"):
        fine_tune(CheckpointFolder(tmp_path, 0), configuration={"loss.sharpness": None})


def test_a_training_of_automatic_precision_goes_on_in_the_one_it_began_in(tmp_path, monkeypatch):
    def processor_of(precision):
        monkeypatch.setattr("deephash_pipeline.training.loop.resolve_precision", lambda *arguments: precision)

    configuration = {"training.precision": "auto"}
    processor_of("bfloat16")
    with pytest.raises(Killed):
        fine_tune(AfterSaving(tmp_path, saves=4), precision="auto", configuration=configuration)
    processor_of("float32")
    with pytest.raises(InputError, match=r"`training.precision` bfloat16 instead of float32"):
        fine_tune(CheckpointFolder(tmp_path, 0), precision="auto", configuration=configuration)
    goes_on = fine_tune(
        CheckpointFolder(tmp_path, 30), precision="bfloat16", configuration={"training.precision": "bfloat16"}
    )
    assert goes_on == fine_tune(precision="bfloat16")


def test_of_a_large_training_set_evenly_chosen_inputs_are_compared(monkeypatch):
    monkeypatch.setattr(continuation, "COMPARED_BYTES", 0)
    monkeypatch.setattr(continuation, "INPUTS_OF_A_DIGEST", 6)
    pixels, labels = images()

    def digest(image):
        changed_pixels = pixels.copy()
        if image is not None:
            changed_pixels[image] ^= 1
        return continuation.training_set_digest(LabelledInputs(ImageInputs(changed_pixels, STATISTICS, CPU), labels))

    noticed = [image for image in range(50) if digest(image) != digest(None)]
    assert noticed == [0, 9, 19, 29, 39, 49]
