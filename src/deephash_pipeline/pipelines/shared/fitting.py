"""Hash functions of z: learned without touching the network, and applied to three sets."""

from typing import Any

import numpy as np
from kedro.pipeline import Node
from numpy.typing import NDArray
from pydantic import RootModel, ValidationError, model_validator

from deephash_pipeline.common.cell import Cell, seed_of_replicate
from deephash_pipeline.common.parameters import faults_in_one_line
from deephash_pipeline.common.randomness import derive_seed
from deephash_pipeline.hashing import HASH_FUNCTIONS, Encoder, hash_function_model
from deephash_pipeline.images.sources.collection import require_labels
from deephash_pipeline.pipelines.shared.bundles import node
from deephash_pipeline.pipelines.shared.searching import Z_SETS, Sets
from deephash_pipeline.retrieval import CodeSets, pack_bits

NAMES_OF_DRAWS = {"liong_sdh": "sdh"}
"""Where a method's draws derive from another name than its key: that of the time when its results were measured."""


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
                validated[name] = hash_function_model(method).model_validate(blocks.get(name) or {}).model_dump()
            except ValidationError as error:
                raise ValueError(f"{name}: {faults_in_one_line(error)}") from error
        return validated


def fit_hash_function(
    training_z: NDArray[np.float32],
    training_labels: NDArray[np.int64],
    cell: Cell,
    parameters: BaselineParameters,
    seed: int,
) -> Encoder:
    """Fit the cell's method on the training set.

    Args:
        training_z: features, float32 of shape (n, z_dimension).
        training_labels: class of each, int64 of shape (n,); or 0 and 1, uint8 of shape (n, classes).
        cell: method, code length and replicate.
        parameters: parameters of all methods.
        seed: seed of the experiment.

    Raises:
        InputError: the method learns from labels, and all images are of one class.
    """
    draws = derive_seed(seed_of_replicate(seed, cell.replicate), NAMES_OF_DRAWS.get(cell.method, cell.method))
    hash_function = HASH_FUNCTIONS[cell.method](cell.bits, random_state=draws, **parameters.root[cell.method])
    if hash_function.supervised and len(training_labels):
        require_labels(training_labels, cell.method)
    return hash_function.fit(training_z, training_labels)


def fit_and_encode(
    z: Sets, training_labels: NDArray[np.int64], cell: Cell, parameters: BaselineParameters, seed: int
) -> tuple[Encoder, CodeSets]:
    """Fit the cell's method on the training set, and hash the three sets, see `fit_hash_function`."""
    encoder = fit_hash_function(z.training, training_labels, cell, parameters, seed)
    return encoder, encode_z(encoder, z)


def fitting_node(cell: str = "params:cell") -> Node:
    """Make the node that fits a hash function on z, and encodes."""
    inputs = (Z_SETS, "training_labels", cell, "params:baseline_hashing", "params:experiment.seed")
    return node(fit_and_encode, inputs, ["encoder", "codes"])


def encode_z(encoder: Encoder, z: Sets) -> CodeSets:
    """Hash the database (which is the training set), the validation set and the queries with the same function."""
    database, validation, query = (
        pack_bits(encoder.transform(of_set)) for of_set in (z.training, z.validation, z.query)
    )
    return CodeSets(database, validation, query, encoder.code_length)
