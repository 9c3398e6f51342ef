"""References beside the codes: real-valued features, and product quantisation of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.deephash.experiment import Experiment
from deephash_pipeline.hashing.product_quantisation import quantise_products
from deephash_pipeline.pipelines.grid import CODE_LENGTHS
from deephash_pipeline.pipelines.shared.searching import Sets, joined_sets
from deephash_pipeline.retrieval import real_valued_metrics
from deephash_pipeline.retrieval.protocols import require_protocol

ReferenceMetrics = dict[str, Any]


def measure_z(z: Sets, labels: Sets, protocol: str) -> list[ReferenceMetrics]:
    """Search by real-valued features, by their cosines; they have no code length."""
    return [{"method": "z", "code_length": None, **_measured(Sets(*map(unit, z)), labels, protocol)}]


def measure_pq(z: Sets, labels: Sets, protocol: str, experiment: Experiment) -> list[ReferenceMetrics]:
    """Search what product quantisation keeps of features of length 1, by the queries as they are."""
    query, training, validation = map(unit, z)
    found = []
    for code_length in CODE_LENGTHS:
        seed = derive_seed(experiment.seed, "pq", code_length)
        kept = Sets(query, *quantise_products(training, [training, validation], code_length, seed))
        found.append({"method": "pq", "code_length": code_length, **_measured(kept, labels, protocol)})
    return found


def unit(z: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale features (n, D) to length 1, whose Euclidean distances rank as cosines do; zeros stay zeros."""
    lengths: NDArray[np.float32] = np.linalg.norm(z, axis=1, keepdims=True)
    return np.divide(z, np.maximum(lengths, np.finfo(np.float32).tiny))


def _measured(z: Sets, labels: Sets, protocol: str) -> ReferenceMetrics:
    by = require_protocol(protocol)
    return {
        "protocol": by.name,
        **real_valued_metrics(z.query, labels.query, joined_sets(by, z), joined_sets(by, labels)),
    }
