"""How mAP moves with the code length: the signs of the slopes in the paper's MNIST columns, on made-up data."""

from statistics import fmean

import pytest

from deephash_pipeline.hashing import HASH_FUNCTIONS
from tests.hashing.precision import mean_average_precision, ten_classes

pytestmark = pytest.mark.complete


@pytest.fixture(scope="module")
def precisions():
    """mAP of each method at 12, 24 and 48 bits, as a mean over seeds where the method draws much."""
    z = ten_classes()
    return {
        kind: [
            fmean(mean_average_precision(HASH_FUNCTIONS[kind](bits, random_state=seed), z) for seed in range(seeds))
            for bits in (12, 24, 48)
        ]
        for kind, seeds in {"lsh": 5, "pcah": 1, "sh": 1, "itq": 1}.items()
    }


def test_lsh_gains_from_longer_codes(precisions):
    twelve, twenty_four, forty_eight = precisions["lsh"]
    assert twelve < twenty_four < forty_eight


@pytest.mark.parametrize("kind", ["pcah", "sh"])
def test_bits_from_directions_of_little_variance_lose(kind, precisions):
    twelve, twenty_four, forty_eight = precisions[kind]
    assert twelve > twenty_four > forty_eight


def test_the_rotation_of_itq_beats_its_principal_components_at_every_length(precisions):
    for itq, pcah in zip(precisions["itq"], precisions["pcah"], strict=True):
        assert itq > pcah
