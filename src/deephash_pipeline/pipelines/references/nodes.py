"""What codes are compared with and are not: real-valued features, and product quantisation of them."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.grid import CODE_LENGTHS
from deephash_pipeline.hashing.product_quantisation import quantise_products
from deephash_pipeline.pipelines.shared.searching import LabelSets
from deephash_pipeline.protocols import require_protocol
from deephash_pipeline.randomness import derive_seed
from deephash_pipeline.retrieval.real_valued import real_valued_metrics

Metrics = dict[str, Any]


class Searched(NamedTuple):
    """Real-valued features of what may be searched, float32 (n, z_dimension), or what stands for them."""

    training: NDArray[np.float32]
    validation: NDArray[np.float32]


def quantise(
    training_z: NDArray[np.float32], validation_z: NDArray[np.float32], experiment: Experiment
) -> dict[int, Searched]:
    """Replace both sets by product quantisation, at each code length."""
    quantised = {}
    for code_length in CODE_LENGTHS:
        seed = derive_seed(experiment.seed, "pq", code_length)
        quantised[code_length] = Searched(*quantise_products(training_z, [training_z, validation_z], code_length, seed))
    return quantised


def measure_z(query_z: NDArray[np.float32], z: Searched, labels: LabelSets, protocol: str) -> list[Metrics]:
    """Search by real-valued features; they have no code length."""
    return [{"method": "z", "code_length": None, **_measured(query_z, z, labels, protocol)}]


def measure_pq(
    query_z: NDArray[np.float32], quantised: dict[int, Searched], labels: LabelSets, protocol: str
) -> list[Metrics]:
    """Search what product quantisation keeps, by the queries as they are, at each code length."""
    return [
        {"method": "pq", "code_length": code_length, **_measured(query_z, kept, labels, protocol)}
        for code_length, kept in quantised.items()
    ]


def _measured(query_z: NDArray[np.float32], z: Searched, labels: LabelSets, protocol: str) -> Metrics:
    by = require_protocol(protocol)
    items = np.concatenate([getattr(z, name) for name in by.database])
    item_labels = np.concatenate([getattr(labels, name) for name in by.database])
    return {"protocol": by.name, **real_valued_metrics(query_z, labels.query, items, item_labels)}
