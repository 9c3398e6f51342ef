"""How mAP moves with the code length: the signs of the slopes in the paper's MNIST columns, on made-up data."""

from statistics import fmean

import numpy as np
import pytest
from numpy.typing import NDArray

from deephash_pipeline.hashing import HASH_FUNCTIONS
from deephash_pipeline.retrieval import count_distances, pack_bits, retrieval_metrics

CODE_LENGTHS = (12, 24, 48)


@pytest.fixture(scope="module")
def mean_average_precision() -> dict[str, list[float]]:
    """mAP of each method at 12, 24 and 48 bits: ten classes, 128 features after a ReLU."""
    generator = np.random.default_rng(7)
    means = generator.normal(size=(10, 128))
    labels = np.arange(3000) % 10
    z = np.maximum(0.7 * means[labels] + generator.normal(size=(3000, 128)), 0.0).astype(np.float32)
    return {
        kind: [fmean(_evaluate(kind, code_length, z, labels, seed) for seed in seeds) for code_length in CODE_LENGTHS]
        for kind, seeds in {"lsh": range(5), "pcah": (0,), "sh": (0,), "itq": (0,)}.items()
    }


def _evaluate(kind: str, code_length: int, z: NDArray[np.float32], labels: NDArray[np.int64], seed: int) -> float:
    bits = HASH_FUNCTIONS[kind](code_length, random_state=seed).fit(z[500:]).transform(z)
    codes = pack_bits(bits)
    histograms = count_distances(codes[:500], labels[:500], codes[500:], labels[500:], code_length)
    return float(retrieval_metrics(histograms)["mean_average_precision"])


def test_lsh_gains_from_longer_codes(mean_average_precision: dict[str, list[float]]) -> None:
    twelve, twenty_four, forty_eight = mean_average_precision["lsh"]
    assert twelve < twenty_four < forty_eight


@pytest.mark.parametrize("kind", ["pcah", "sh"])
def test_bits_from_directions_of_little_variance_lose(
    kind: str, mean_average_precision: dict[str, list[float]]
) -> None:
    twelve, twenty_four, forty_eight = mean_average_precision[kind]
    assert twelve > twenty_four > forty_eight


def test_the_rotation_of_itq_beats_its_principal_components_at_every_length(
    mean_average_precision: dict[str, list[float]],
) -> None:
    for itq, pcah in zip(mean_average_precision["itq"], mean_average_precision["pcah"], strict=True):
        assert itq > pcah
