"""The step that all hashing stages end with: z of three sets -> codes of three sets, by one function."""

import numpy as np
from kedro.pipeline import Node
from numpy.typing import NDArray

from deephash_pipeline.hashing.base import Encoder
from deephash_pipeline.retrieval import CodeSets, pack_bits


def encode_z(
    encoder: Encoder,
    training_z: NDArray[np.float32],
    validation_z: NDArray[np.float32],
    query_z: NDArray[np.float32],
) -> CodeSets:
    """Hash the database (which is the training set), the validation set and the queries with the same function."""
    database, validation, query = (pack_bits(encoder.transform(z)) for z in (training_z, validation_z, query_z))
    return CodeSets(database, validation, query, encoder.code_length)


def encoding_node() -> Node:
    """Make the node of a cell whose codes come from the shared trunk's z."""
    return Node(encode_z, inputs=["encoder", "training_z", "validation_z", "query_z"], outputs="codes", name="encode")
