"""A folder for the Hugging Face Hub loads as the hasher that it was made from, and its card says what is known."""

import pytest
import yaml

from deephash_pipeline import ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash.export import export_huggingface
from deephash_pipeline.provenance import Origin
from tests.deephash.test_hasher import random_images

METRICS = {"method": "deephash", "mean_average_precision": 0.75, "validation_mean_average_precision": None}
ORIGIN = Origin(
    node="fine_tuning.deephash.b48.fine_tune",
    parameters={"fine_tuning.training.epochs": 10, "experiment.seed": 7, "data_ingestion.query_count": 500},
    command="kedro run --env=digits",
)


@pytest.fixture(scope="module")
def digits():
    return ImageHasher.pretrained("digits-48", device="cpu")


def test_the_folder_loads_as_the_hasher(digits, tmp_path):
    export_huggingface(digits, tmp_path / "digits")
    loaded = ImageHasher.load(tmp_path / "digits", device="cpu")
    images = random_images(20, 1, 28)
    assert (loaded.encode(images) == digits.encode(images)).all()
    assert loaded.description == digits.description
    written = {path.name for path in (tmp_path / "digits").iterdir()}
    assert written == {"README.md", "config.json", "model.safetensors"}


def test_the_card_has_the_metrics_and_what_the_manifest_says(digits, tmp_path):
    export_huggingface(digits, tmp_path, METRICS, ORIGIN)
    _, header, text = (tmp_path / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    [model] = yaml.safe_load(header)["model-index"]
    assert model["name"] == "digits-deephash-48"
    assert model["results"][0]["metrics"] == [{"type": "mean_average_precision", "value": 0.75}]
    for line in (
        "| mean_average_precision | 0.75 |",
        "| experiment.seed | 7 |",
        "| fine_tuning.training.epochs | 10 |",
        "`kedro run --env=digits`",
        "| classes | 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 |",
    ):
        assert f"\n{line}\n" in text
    assert "validation" not in text
    assert "query_count" not in text


def test_what_was_not_measured_is_not_claimed(digits, tmp_path):
    export_huggingface(digits, tmp_path)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "They were not measured." in text
    assert "model-index" not in text
    assert "## Training" not in text


def test_a_folder_that_has_something_is_left_alone(digits, tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(InputError, match="is not empty: name another folder"):
        export_huggingface(digits, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
