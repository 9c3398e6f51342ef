import numpy as np
import pytest
import torch

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.working_place import WorkingPlace
from deephash_pipeline.deephash import ClassifierRun, LabelledImages, PreTrainingParameters, TrainingSet
from deephash_pipeline.deephash.pretrain import ValidationAccuracy, pretrain
from deephash_pipeline.hashing import ITQ, LSH, OneOfC
from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet
from deephash_pipeline.pipelines.baseline_hashing.nodes import make_classifier_baseline
from deephash_pipeline.pipelines.data_ingestion.nodes import IngestionParameters, split_images
from deephash_pipeline.pipelines.shared.fitting import BaselineParameters, encode_z, fit_and_encode, fit_hash_function
from deephash_pipeline.pipelines.shared.searching import Sets
from deephash_pipeline.retrieval import unpack_bits
from tests.pipelines.squares import (
    CLASSES,
    EXPERIMENT,
    IMAGES,
    LABELS,
    QUERY_IMAGES,
    QUERY_LABELS,
    STATISTICS,
    TRAINING,
)

# Data ingestion.


def test_images_are_split_into_what_the_catalog_names(tmp_path):
    everything = ImageSet(IMAGES, LABELS, [f"square {row}" for row in range(len(LABELS))])
    parameters = IngestionParameters(query_count=9, validation_share=0.25)
    collection = ImageCollection({"all": everything}, CLASSES)
    artefacts = split_images(collection, WorkingPlace(tmp_path / "decoded"), parameters, "paper", EXPERIMENT.seed)
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


def test_pre_training_has_a_row_of_metrics_for_each_epoch(classifier):
    history = classifier[2]
    assert history["epoch"].tolist() == [1, 2, 3, 4]
    assert set(history["stage"]) == {"softmax_pre_training"}
    assert history["loss"].iloc[-1] < history["loss"].iloc[0]
    assert "validation_accuracy" not in history


def test_pre_training_watches_validation_images_and_has_a_place_for_classes_that_training_has_not_seen():
    given = TrainingSet(IMAGES, LABELS, STATISTICS, [*CLASSES, "unseen"])
    parameters = PreTrainingParameters.model_validate({"training": TRAINING})
    validation = LabelledImages(QUERY_IMAGES, QUERY_LABELS)
    _, softmax, history, _ = pretrain(given, validation, parameters, ClassifierRun(EXPERIMENT))
    assert history["validation_accuracy"].between(0, 1).all()
    assert len(softmax["bias"]) == 4


def test_of_more_validation_than_training_images_a_sample_is_watched(monkeypatch):
    watched = []

    def watch(self):
        watched.append((len(self.images), len(self.labels)))
        return {}

    monkeypatch.setattr(ValidationAccuracy, "__call__", watch)
    few = TrainingSet(IMAGES[:12], LABELS[:12], STATISTICS, CLASSES)
    parameters = PreTrainingParameters.model_validate({"training": TRAINING})
    pretrain(few, LabelledImages(IMAGES, LABELS), parameters, ClassifierRun(EXPERIMENT))
    assert watched == [(12, 12), (12, 12)]


# Hash functions on z.


def test_the_seed_of_the_experiment_decides_the_code(z):
    def code(seed):
        experiment = EXPERIMENT.model_copy(update={"seed": seed})
        cell = Cell(method="lsh", code_length=32)
        return fit_hash_function(z, LABELS, cell, BaselineParameters.model_validate({}), experiment.seed).transform(z)

    np.testing.assert_array_equal(code(1), code(1))
    assert (code(1) != code(2)).any()


def test_a_block_of_parameters_reaches_its_method(z):
    parameters = BaselineParameters.model_validate({"lsh": {"centre": True}})
    encoder = fit_hash_function(z, LABELS, Cell(method="lsh", code_length=12), parameters, EXPERIMENT.seed)
    assert isinstance(encoder, LSH)
    assert encoder.threshold_.any()


def test_database_and_queries_are_hashed_by_the_same_function(z):
    encoder = ITQ(12, random_state=1).fit(z)
    codes = encode_z(encoder, Sets(query=z[::-1], training=z, validation=z[:7]))
    assert codes.code_length == 12
    np.testing.assert_array_equal(codes.database, codes.query[::-1])
    np.testing.assert_array_equal(codes.validation, codes.database[:7])
    np.testing.assert_array_equal(unpack_bits(codes.database, 12), encoder.transform(z))


@pytest.mark.parametrize("method", ["itq", "ksh", "srh"])
def test_a_hash_function_is_learned_without_the_queries(z, method):
    cell = Cell(method=method, code_length=4)
    parameters = BaselineParameters.model_validate({})
    hashed = [fit_and_encode(Sets(query, z, z[:3]), LABELS, cell, parameters, 1) for query in (z, 0 * z[:5])]
    first, second = (encoder.arrays() for encoder, _ in hashed)
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
    assert [len(codes.query) for _, codes in hashed] == [len(z), 5]


def test_the_code_of_the_classifier_baseline_is_one_at_the_predicted_class(z, softmax_weights):
    baseline = make_classifier_baseline(softmax_weights, LABELS)
    bits = unpack_bits(encode_z(baseline, Sets(z, z, z[:0])).query, len(CLASSES))
    logits = torch.from_numpy(z) @ softmax_weights["weight"].T + softmax_weights["bias"]
    assert isinstance(baseline, OneOfC)
    assert (bits.sum(axis=1) == 1).all()
    np.testing.assert_array_equal(bits.argmax(axis=1), logits.argmax(dim=1).numpy())
