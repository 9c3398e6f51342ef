"""Images of three classes, few and easy, and a short training: what the tests of stages share."""

import numpy as np

from deephash_pipeline.common.cell import Cell
from deephash_pipeline.deephash import Experiment, LabelledImages, Run, TrainingSet
from deephash_pipeline.images.statistics import pixel_statistics
from deephash_pipeline.pipelines.shared.measuring import measure_retrieval

EXPERIMENT = Experiment(benchmark="squares", network="lenet", seed=7, device="cpu")
CLASSES = ["left", "middle", "right"]
NO_IMAGES = np.empty((0, 1, 28, 28), dtype=np.uint8)
NO_LABELS = np.empty(0, dtype=np.int64)


def bars(labels, seed):
    """Images of bright bars at the left, in the middle or at the right, one for each of their labels, in noise."""
    images = np.random.default_rng(seed).integers(0, 90, size=(len(labels), 1, 28, 28)).astype(np.uint8)
    for image, of_image in zip(images, labels, strict=True):
        for label in of_image:
            image[0, 4:24, 9 * label : 9 * label + 8] += 150
    return images


def squares(count, seed):
    """Images of one bar each, and where it is."""
    labels = np.arange(count, dtype=np.int64) % len(CLASSES)
    return bars(labels[:, None], seed), labels


IMAGES, LABELS = squares(36, seed=0)
QUERY_IMAGES, QUERY_LABELS = squares(9, seed=1)
STATISTICS = pixel_statistics(IMAGES)
TRAINING_SET = TrainingSet(IMAGES, LABELS, STATISTICS, CLASSES)
NO_SET = LabelledImages(NO_IMAGES, NO_LABELS)
TRAINING = {"epochs": 2, "batch_size": 12, "learning_rate": 0.01}


def measured_codes(codes, labels, protocol="paper", cell=None):
    """Metrics and curves of codes."""
    return measure_retrieval(codes, labels, protocol, cell or Cell(method="deephash", code_length=12))


def run_of(method, code_length=12):
    return Run(EXPERIMENT, Cell(method=method, code_length=code_length))
