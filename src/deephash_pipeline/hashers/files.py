"""Files of hashers, known by their format and not by words in them."""

import json
from pathlib import Path

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import required
from deephash_pipeline.hashers.base import HasherDescription

HASHER_KEY = "deephash_pipeline.hasher"
"""Of the metadata of both kinds."""
ENCODER = "encoder."
"""What names of the tensors of a hash function begin with."""
MOST_FILE_HEADER_BYTES = 10**8


def is_hasher(path: Path) -> bool:
    """Tell whether a file is in the safetensors format, with the metadata of a hasher.

    Example:
        >>> is_hasher(Path(__file__))
        False
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > MOST_FILE_HEADER_BYTES:
            return False
        try:
            return HASHER_KEY in json.loads(file.read(length))["__metadata__"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return False


def read_description(path: Path) -> HasherDescription:
    """Read what is stored beside the weights of a hasher, and not these.

    Raises:
        InputError: the file is not there, is damaged, or is no hasher.
    """
    try:
        with path.open("rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        return HasherDescription.model_validate(json.loads(header["__metadata__"][HASHER_KEY])["description"])
    except (OSError, OverflowError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"hasher {path} cannot be read, {error!s:.200}: make or copy it again") from error


def is_onnx_hasher(path: Path) -> bool:
    """Tell whether a file is an ONNX model, with the metadata of a hasher.

    Raises:
        InputError: the package onnx is not installed.

    Example:
        >>> is_onnx_hasher(Path(__file__))
        False
    """
    onnx = required("onnx", "onnx")
    try:
        model = onnx.load(path, "protobuf", load_external_data=False)
    except Exception:  # what is no model can make its reader raise anything
        return False
    return any(entry.key == HASHER_KEY for entry in model.metadata_props)
