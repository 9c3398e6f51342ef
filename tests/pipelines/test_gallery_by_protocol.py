"""The gallery shows the images that the protocol searches."""

import numpy as np
import pytest

from deephash_pipeline.pipelines.shared.searching import Sets, searched, searched_images
from deephash_pipeline.retrieval import CodeSets
from deephash_pipeline.retrieval.protocols import PROTOCOLS

TRAINING, VALIDATION = (np.full((count, 1, 2, 2), count, np.uint8) for count in (5, 3))
CODES = CodeSets(TRAINING[:, 0, 0, :1], VALIDATION[:, 0, 0, :1], np.zeros((2, 1), np.uint8), 8)
LABELS = Sets(np.arange(2), np.arange(5), np.arange(3))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_images_are_those_of_the_codes_and_labels_that_are_searched(name):
    database = searched(PROTOCOLS[name], CODES, LABELS)
    images = searched_images(PROTOCOLS[name], TRAINING, VALIDATION)
    assert len(images) == len(database.codes) == len(database.labels)
    assert [int(image.max()) for image in images] == database.codes[:, 0].tolist()
