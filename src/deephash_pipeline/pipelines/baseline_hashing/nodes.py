"""Hash functions learned from z alone, without touching the network."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import RootModel, ValidationError, model_validator
from torch import Tensor

from deephash_pipeline.grid import Cell
from deephash_pipeline.hashing import HASH_FUNCTIONS, Encoder, OneOfC, parameters_model
from deephash_pipeline.pipelines.experiment import ExperimentParameters
from deephash_pipeline.randomness import derive_seed


class BaselineParameters(RootModel[dict[str, dict[str, Any]]]):
    """Keyword parameters of each method of `HASH_FUNCTIONS`; what is left out takes the constructor's default."""

    @model_validator(mode="before")
    @classmethod
    def _blocks_by_method(cls, blocks: dict[str, Any]) -> dict[str, dict[str, Any]]:
        unknown = set(blocks) - set(HASH_FUNCTIONS)
        if unknown:
            raise ValueError(f"unknown method {', '.join(sorted(unknown))}: choose among {', '.join(HASH_FUNCTIONS)}")
        validated = {}
        for name, method in HASH_FUNCTIONS.items():
            try:
                validated[name] = parameters_model(method).model_validate(blocks.get(name) or {}).model_dump()
            except ValidationError as error:
                faults = (f"{name}.{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
                raise ValueError("; ".join(faults)) from error
        return validated


def fit_hash_function(
    training_z: NDArray[np.float32],
    training_labels: NDArray[np.int64],
    cell: Cell,
    parameters: BaselineParameters,
    experiment: ExperimentParameters,
) -> Encoder:
    """Fit the cell's method on the training set."""
    seed = derive_seed(experiment.seed, cell.method)
    hash_function = HASH_FUNCTIONS[cell.method](cell.bits, random_state=seed, **parameters.root[cell.method])
    return hash_function.fit(training_z, training_labels)


def make_yardstick(softmax_weights: Mapping[str, Tensor]) -> Encoder:
    """Turn the classifier itself into a hash function: bit c of an image says whether it is classified as c."""
    weight, bias = softmax_weights["weight"].numpy(), softmax_weights["bias"].numpy()
    return OneOfC.from_arrays(len(bias), {"weights": weight.T, "bias": bias})
