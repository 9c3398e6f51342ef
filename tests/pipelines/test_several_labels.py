"""The stages on images that have several labels: two bars, each at the left, in the middle or at the right."""

import numpy as np
import pytest
import torch

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.deephash import ClassifierRun, Experiment, FineTuningParameters, PreTrainingParameters, fine_tune
from deephash_pipeline.deephash.initialise import HashLayerInitParameters, initialise_hash_layer
from deephash_pipeline.deephash.pretrain import extract_features, pretrain
from deephash_pipeline.deephash.training_set import LabelledFeatures, LabelledImages, TrainingSet
from deephash_pipeline.images.statistics import pixel_statistics
from deephash_pipeline.pipelines.baseline_hashing.nodes import make_classifier_baseline
from deephash_pipeline.pipelines.fine_tuning.nodes import encode_images
from deephash_pipeline.pipelines.grid import METHODS
from deephash_pipeline.pipelines.measured_cells.nodes import report_measured_cells
from deephash_pipeline.pipelines.shared.fitting import BaselineParameters, fit_hash_function
from deephash_pipeline.pipelines.shared.searching import Sets
from deephash_pipeline.reports.gallery import CodedImages, retrieval_gallery
from deephash_pipeline.reports.page import ReportingParameters
from deephash_pipeline.retrieval import CodeSets, count_shared_labels, graded_metrics, pack_bits
from tests.pipelines.squares import CLASSES, EXPERIMENT, TRAINING, bars, measured_codes, run_of

CODE_LENGTH = 12


def two_bars(count, seed):
    labels = np.array([(1, 0, 0), (0, 1, 1), (1, 1, 0), (0, 0, 1)], dtype=np.uint8)[np.arange(count) % 4]
    return bars([np.flatnonzero(of_image) for of_image in labels], seed), labels


IMAGES, LABELS = two_bars(36, seed=0)
QUERY_IMAGES, QUERY_LABELS = two_bars(8, seed=1)
TRAINING_SET = TrainingSet(IMAGES, LABELS, pixel_statistics(IMAGES), CLASSES)
QUERIES = LabelledImages(QUERY_IMAGES, QUERY_LABELS)


@pytest.fixture(scope="module")
def classifier():
    parameters = PreTrainingParameters.model_validate({"training": {**TRAINING, "epochs": 4}})
    return pretrain(TRAINING_SET, QUERIES, parameters, ClassifierRun(EXPERIMENT))


@pytest.fixture(scope="module")
def z(classifier):
    return extract_features(IMAGES, TRAINING_SET.statistics, classifier[0], EXPERIMENT)


@pytest.fixture(scope="module")
def codes(z):
    encoder = fit_hash_function(
        z, LABELS, Cell(method="itq", code_length=CODE_LENGTH), BaselineParameters({"itq": {}}), EXPERIMENT.seed
    )
    packed = pack_bits(encoder.transform(z))
    return CodeSets(database=packed, validation=packed[20:30], query=packed[30:], code_length=CODE_LENGTH)


def test_the_classifier_learns_every_label_by_its_own_sigmoid(classifier):
    _, softmax, history, _ = classifier
    assert softmax["weight"].shape[0] == len(CLASSES)
    assert history["loss"].iloc[-1] < history["loss"].iloc[0]
    assert history["validation_accuracy"].between(0, 1).all()


@pytest.mark.parametrize("method", ["bre", "mlh", "ksh", "ldah", "itq"])
def test_hash_functions_of_pairs_and_unsupervised_ones_learn_from_several_labels(method, z):
    few = {"mlh": {"batches_per_stage": 5, "stages": 2}, "ldah": {"positive_pairs": 200, "negative_pairs": 200}}
    parameters = BaselineParameters({method: few.get(method, {})})
    encoder = fit_hash_function(z, LABELS, Cell(method=method, code_length=CODE_LENGTH), parameters, EXPERIMENT.seed)
    assert encoder.transform(z).shape == (36, CODE_LENGTH)


def test_the_code_of_the_classifier_needs_one_label_an_image(classifier):
    with pytest.raises(InputError, match="1-of-C code of the classifier needs one label an image"):
        make_classifier_baseline(classifier[1], LABELS)


def test_the_hash_layer_and_the_network_are_trained_on_several_labels(z):
    features = LabelledFeatures(z, LABELS, CLASSES)
    weights, _, history = initialise_hash_layer(
        features, HashLayerInitParameters.model_validate({"training": TRAINING}), run_of("deephash_pretrained")
    )
    assert weights["weight"].shape == (CODE_LENGTH, z.shape[1])
    assert torch.isfinite(weights["weight"]).all()
    hasher, history = fine_tune(
        TRAINING_SET, FineTuningParameters.model_validate({"training": TRAINING}), run_of("deephash_random_start")
    )
    assert np.isfinite(history["loss"]).all()
    assert len(encode_images(hasher, EXPERIMENT, Sets(QUERY_IMAGES, IMAGES, IMAGES[:0])).query) == len(QUERY_IMAGES)


def test_a_cell_is_measured_by_the_number_of_labels_shared(codes):
    labels = Sets(LABELS[30:], LABELS, LABELS[20:30])
    metrics, _ = measured_codes(codes, labels, cell=Cell(method="itq", code_length=CODE_LENGTH))
    graded = count_shared_labels(codes.query, labels.query, codes.database, labels.training, CODE_LENGTH)
    for name, value in graded_metrics(graded).items():
        assert metrics[name] == value
    assert 0 < metrics["chance_level"] < metrics["mean_average_precision"] <= 1
    on_descriptors = {**metrics, "method": "descriptor_itq"}
    table, *_ = report_measured_cells(
        {"itq/b12/metrics.json": metrics, "descriptor_itq/b12/metrics.json": on_descriptors},
        METHODS,
        ReportingParameters(),
        Experiment(benchmark="digits", network="lenet", seed=1),
    )
    assert table[["ndcg_at_100", "acg_at_100", "wap_at_100"]].notna().all(axis=None)
    held_out = count_shared_labels(codes.query, labels.query, codes.validation, labels.validation, CODE_LENGTH)
    for name, value in graded_metrics(held_out).items():
        assert metrics[f"held_out_{name}"] == value


def test_the_gallery_names_all_labels_of_an_image_and_frames_it_green_if_it_shares_one(codes):
    html = retrieval_gallery(
        CodedImages(IMAGES[30:], LABELS[30:], codes.query),
        CodedImages(IMAGES, LABELS, codes.database),
        CLASSES,
        CODE_LENGTH,
    )
    assert "middle, right" in html and "shares a label with the query. Red frame with a cross: shares none." in html
