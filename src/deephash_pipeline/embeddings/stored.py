"""The file of a hash function in the folder of an index: its arrays, and what was measured when the index was built."""

import json
from pathlib import Path
from typing import Literal

import numpy as np
import safetensors
import safetensors.numpy
from pydantic import BaseModel, ConfigDict, ValidationError

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import replacing
from deephash_pipeline.common.writing import cannot_write
from deephash_pipeline.embeddings.coder import Coder
from deephash_pipeline.embeddings.recall import MeasuredRecall
from deephash_pipeline.hamming.index_folder import HASH_FUNCTION
from deephash_pipeline.provenance.arrays import arrays_digest

Rescore = Literal["int8", "float16", "none"]
CODE_LENGTH = 512
"""Bits of a code, if nothing is said."""
HASH_FUNCTION_FORMAT = 1
HASH_FUNCTION_KEY = "deephash_pipeline.hash_function"


class Description(BaseModel):
    """What is stored beside the arrays.

    Attributes:
        method: key of the hash function.
        code_length: bits per code.
        width: numbers of a vector.
        rescore: type that vectors are stored as, ``int8``, ``float16`` or ``none``.
        measured: recall that was measured.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: str
    code_length: int
    width: int
    rescore: str
    measured: MeasuredRecall


def save_hash_function(folder: Path, coder: Coder, description: Description) -> None:
    """Write the file, whole or not at all.

    Raises:
        InputError: the disk is full or cannot be written.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in coder.arrays().items()}
    content = {"format": HASH_FUNCTION_FORMAT, **description.model_dump(mode="json")}
    metadata = {HASH_FUNCTION_KEY: json.dumps({**content, "digest": arrays_digest(arrays, content)}, sort_keys=True)}
    try:
        with replacing(folder / HASH_FUNCTION) as beside:
            beside.write_bytes(safetensors.numpy.save(arrays, metadata))
    except OSError as error:
        raise cannot_write(folder, error) from error


def load_hash_function(folder: Path) -> tuple[Coder, Description]:
    """Read the file.

    Raises:
        InputError: it is damaged.
    """
    path = folder / HASH_FUNCTION
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            content = json.loads((file.metadata() or {})[HASH_FUNCTION_KEY])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        if content.get("format") != HASH_FUNCTION_FORMAT:
            raise ValueError(f"it is of format {content.get('format')}, this version reads {HASH_FUNCTION_FORMAT}")
        if content.pop("digest") != arrays_digest(arrays, content):
            raise ValueError("its numbers are not those that were written")
        description = Description.model_validate({key: value for key, value in content.items() if key != "format"})
        return Coder(description.method, description.code_length, arrays), description
    except (OSError, safetensors.SafetensorError, KeyError, ValueError, ValidationError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path} is damaged ({reason}): restore it from a backup, or build the index anew") from error
