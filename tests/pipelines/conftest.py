"""A classifier of the squares, and their features."""

import pytest

from deephash_pipeline.deephash import ClassifierRun, PreTrainingParameters
from deephash_pipeline.deephash.pretrain import extract_features, pretrain
from tests.pipelines.squares import EXPERIMENT, IMAGES, NO_SET, QUERY_IMAGES, STATISTICS, TRAINING, TRAINING_SET


@pytest.fixture(scope="session")
def classifier():
    parameters = PreTrainingParameters.model_validate({"training": {**TRAINING, "epochs": 4}})
    return pretrain(TRAINING_SET, NO_SET, parameters, ClassifierRun(EXPERIMENT))


@pytest.fixture(scope="session")
def trunk_weights(classifier):
    return classifier[0]


@pytest.fixture(scope="session")
def softmax_weights(classifier):
    return classifier[1]


@pytest.fixture(scope="session")
def z(trunk_weights):
    return extract_features(IMAGES, STATISTICS, trunk_weights, EXPERIMENT)


@pytest.fixture(scope="session")
def query_z(trunk_weights):
    return extract_features(QUERY_IMAGES, STATISTICS, trunk_weights, EXPERIMENT)
