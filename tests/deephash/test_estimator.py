"""DeepHash learns from labelled images without Kedro, and is then an image hasher."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from deephash_pipeline import DeepHash, ImageHasher
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash import FineTuningParameters, HashLayerInitParameters, PreTrainingParameters
from deephash_pipeline.deephash.features import FeatureExtractor
from deephash_pipeline.deephash.given_images import usual_network
from deephash_pipeline.deephash.recipes import OF_PAPERS_NETWORKS, recipe_for
from deephash_pipeline.retrieval import chance_level, count_distances, mean_average_precision
from deephash_pipeline.training import TrainingParameters

DIGITS = load_digits()
IMAGES = (DIGITS.images * 15).astype(np.uint8)


@pytest.fixture(scope="module")
def fitted():
    return DeepHash(code_length=24, effort=0.05).fit(IMAGES[:600], DIGITS.target[:600])


def test_it_learns_codes_that_find_images_of_the_same_class_and_measures_itself_on_others(fitted):
    queries, database = fitted.encode(IMAGES[600:800]), fitted.encode(IMAGES[:600])
    found = count_distances(queries, DIGITS.target[600:800], database, DIGITS.target[:600], 24)
    assert mean_average_precision(found) > 0.4
    assert len(fitted.history_) == 1
    assert fitted.validation_map_ > 3 * fitted.validation_chance_
    assert fitted.validation_chance_ == pytest.approx(chance_level(DIGITS.target[:600], DIGITS.target[:600]), abs=0.003)
    assert 540 <= fitted.description.training_images < 550


def test_one_that_has_learned_nothing_says_so(caplog):
    labels = np.random.default_rng(0).integers(0, 10, 300)
    hasher = DeepHash(code_length=8, effort=0.01).fit(IMAGES[:300], labels)
    assert hasher.validation_map_ < hasher.validation_chance_ + 0.1
    assert "it has learned little: raise `effort` to 1" in caplog.text


def test_it_is_an_image_hasher_and_its_file_is_read_as_one(fitted, tmp_path):
    fitted.save(tmp_path / "digits.safetensors")
    loaded = ImageHasher.load(tmp_path / "digits.safetensors")
    assert isinstance(fitted, ImageHasher)
    assert not isinstance(loaded, DeepHash)
    np.testing.assert_array_equal(loaded.encode(IMAGES[:300]), fitted.encode(IMAGES[:300]))
    assert loaded.description.class_names == tuple("0123456789")
    with pytest.raises(InputError, match="has learned nothing yet: call fit"):
        DeepHash().encode(IMAGES[:3])


def test_classes_may_have_names_and_be_a_column():
    names = np.array(["zero", "one"])[DIGITS.target[:200] % 2]
    hasher = DeepHash(code_length=8, effort=0.01).fit(list(IMAGES[:200]), names[:, np.newaxis].tolist())
    several = DeepHash(code_length=8, effort=0.01).fit(IMAGES[:200], pd.get_dummies(names))
    assert hasher.description.class_names == several.description.class_names == ("one", "zero")
    assert hasher.encode(IMAGES[:3]).shape == (3, 1)


def test_a_training_with_checkpoints_is_not_repeated(tmp_path):
    first = DeepHash(code_length=8, effort=0.01, checkpoints=tmp_path).fit(IMAGES[:200], DIGITS.target[:200])
    again = DeepHash(code_length=8, effort=0.01, checkpoints=tmp_path).fit(IMAGES[:200], DIGITS.target[:200])
    assert {path.name for path in tmp_path.iterdir()} == {"pretraining", "hash_layer_init", "fine_tuning"}
    np.testing.assert_array_equal(first.encode(IMAGES), again.encode(IMAGES))


@pytest.mark.parametrize(
    ("parameters", "images", "labels", "message"),
    [
        ({}, IMAGES[:100], DIGITS.target[:99], "100 images but 99 labels"),
        ({}, IMAGES[:100], np.zeros(100, int), "labels of at least two"),
        (
            {"fine_tuning": OF_PAPERS_NETWORKS.fine_tuning},
            IMAGES[:99],
            DIGITS.target[:99],
            "^fine_tuning: 93 training images are fewer",
        ),
        ({"pretraining": {}}, IMAGES, DIGITS.target, "pass pretraining as PreTrainingParameters, not dict"),
        ({"random_state": -1}, IMAGES, DIGITS.target, "random_state: "),
        ({}, IMAGES[:2], [[1], [1, 2]], "labels are of several lengths"),
        ({}, [], [], "labels of at least two"),
        ({}, IMAGES[:3], ["a", None, "b"], "labels are missing"),
        ({}, IMAGES[:3], np.array(["a", 1, "b"], object), "labels are of several kinds"),
        ({}, IMAGES[:3], [0.0, np.nan, 1.0], "labels are missing"),
        ({}, IMAGES[:3], np.zeros((3, 1, 1), int), r"labels have the shape \(3, 1, 1\)"),
        ({}, IMAGES[:3], csr_array(np.eye(3)), r"labels are no array \(csr_array\)"),
        ({}, IMAGES[:3], [0.0, 0.5, 1.0], "labels contain fractions"),
        ({}, IMAGES[:3].reshape(3, -1), [0, 1, 0], r"images of shape \(3, 64\) are flat"),
        ({}, IMAGES[:3], 2 * np.eye(3, dtype=int), "labels of several columns are 0 or 1"),
        ({"network": "lenett"}, IMAGES, DIGITS.target, "^DeepHash: unknown network `lenett`.* such as resnet18$"),
        ({"code_length": 0}, IMAGES, DIGITS.target, "^code_length is 0 bits; choose one from 1 to 4096"),
    ],
)
def test_what_cannot_be_learned_from_or_with_is_refused_before_any_training(parameters, images, labels, message):
    with pytest.raises(InputError, match=message):
        DeepHash(**{"effort": 0.01, **parameters}).fit(images, labels)


def test_codes_stay_those_that_were_learned_where_a_parameter_is_set_afterwards(fitted):
    check_is_fitted(fitted)
    codes = fitted.encode(IMAGES[:3])
    try:
        np.testing.assert_array_equal(fitted.set_params(code_length=48).encode(IMAGES[:3]), codes)
    finally:
        fitted.set_params(code_length=24)


def test_a_hasher_that_cannot_be_written_is_refused_in_one_line(fitted, tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "x.safetensors", tmp_path / ("x" * 300)):
        with pytest.raises(InputError, match="cannot be written"):
            fitted.save(path)


@pytest.mark.parametrize(
    ("size", "network"),
    [((8, 8), "small_resnet"), ((32, 96, 3), "small_resnet"), ((8, 97), "timm/tf_efficientnet_lite0")],
)
def test_the_network_follows_from_the_size_of_the_first_images(size, network):
    images = [np.random.default_rng(row).integers(0, 256, size, np.uint8) for row in range(2)]
    assert usual_network(images) == network


def test_of_photographs_the_hash_layer_alone_is_learned_on_features_of_imagenet(monkeypatch):
    pytest.importorskip("timm")
    images = np.random.default_rng(0).integers(0, 256, (8, 112, 80, 3), np.uint8)
    classes = np.arange(8) % 2
    training = TrainingParameters(epochs=1, batch_size=8, learning_rate=0.01)
    hasher = DeepHash(
        code_length=16,
        image_size=(64, 64),
        hash_layer_init=HashLayerInitParameters(training=training),
        fine_tuning=FineTuningParameters(training=training),
    ).fit(iter(images), classes)
    extractor = FeatureExtractor.pretrained(image_size=(64, 64), runtime="torch")
    for name, tensor in extractor.trunk.state_dict().items():
        assert torch.equal(hasher.trunk.state_dict()[name], tensor)
    assert hasher.encode(images).shape == (8, 2)


def test_a_fit_ends_with_the_codes_of_pre_training_or_itq_where_fine_tuning_has_destroyed_them(caplog):
    caplog.set_level("INFO")
    destructive = recipe_for("small_resnet", 540, 10, frozen=False).fine_tuning
    destructive = destructive.model_copy(
        update={"training": destructive.training.model_copy(update={"learning_rate": 30.0, "weight_decay": 0.0})}
    )
    hasher = DeepHash(code_length=24, effort=0.05, fine_tuning=destructive).fit(IMAGES[:600], DIGITS.target[:600])
    assert hasher.learned_by_ in ("deephash_pretrained", "itq")
    assert hasher.description.method == hasher.learned_by_
    assert "fine-tuning ended below" in caplog.text
    queries, database = hasher.encode(IMAGES[600:800]), hasher.encode(IMAGES[:600])
    found = count_distances(queries, DIGITS.target[600:800], database, DIGITS.target[:600], 24)
    assert mean_average_precision(found) > 0.4


def test_a_rate_that_is_given_is_taken_and_one_that_is_not_is_found_by_trials(tmp_path, caplog):
    caplog.set_level("INFO")
    settings = {"code_length": 8, "effort": 0.01}
    training = TrainingParameters(epochs=1, batch_size=32, learning_rate=0.0123)
    given = PreTrainingParameters(training=training)
    DeepHash(pretraining=given, checkpoints=tmp_path / "given", **settings).fit(IMAGES[:200], DIGITS.target[:200])
    assert "trials" not in caplog.text
    DeepHash(checkpoints=tmp_path / "found", **settings).fit(IMAGES[:200], DIGITS.target[:200])
    assert " trials on" in caplog.text
    assert len(list((tmp_path / "found" / "pretraining").glob("trial *"))) in (3, 4)
    assert not list((tmp_path / "given" / "pretraining").glob("trial *"))


def test_it_is_an_estimator_of_scikit_learn(fitted):
    bits = fitted.transform(IMAGES[600:610])
    np.testing.assert_array_equal(np.packbits(bits, axis=1), fitted.encode(IMAGES[600:610]))
    found = count_distances(fitted.encode(IMAGES[600:700]), DIGITS.target[600:700], *fitted._database, 24)
    assert fitted.score(IMAGES[600:700], DIGITS.target[600:700]) == pytest.approx(mean_average_precision(found))
    with pytest.raises(InputError, match="no image has a class that was trained"):
        fitted.score(IMAGES[:3], ["a", "b", "c"])
    with pytest.raises(InputError, match="3 images but 2 labels"):
        fitted.score(IMAGES[:3], [1, 2])
    quick = DeepHash(code_length=8, effort=0.01)
    assert cross_val_score(quick, IMAGES[:120], DIGITS.target[:120], cv=2).shape == (2,)
    search = GridSearchCV(quick, {"code_length": [8, 12]}, cv=2).fit(IMAGES[:120], DIGITS.target[:120])
    assert search.best_params_["code_length"] in (8, 12)
    classifier = make_pipeline(quick, KNeighborsClassifier(metric="hamming")).fit(IMAGES[:120], DIGITS.target[:120])
    assert classifier.predict(IMAGES[:5]).shape == (5,)
