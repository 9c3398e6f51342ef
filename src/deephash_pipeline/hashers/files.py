"""Files of hashers, known by their format and not by words in them."""

import json
from pathlib import Path
from typing import BinaryIO

HASHER_KEY = "deephash_pipeline.hasher"
"""Of the metadata of both kinds."""
ENCODER = "encoder."
"""What names of the tensors of a hash function begin with."""
MOST_FILE_HEADER_BYTES = 10**8
METADATA_FIELD, VARINT, FIXED64, BYTES, FIXED32 = 14, 0, 1, 2, 5


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


def is_onnx_hasher(path: Path) -> bool:
    """Tell whether a file is an ONNX model, with the metadata of a hasher.

    A model is a message of protocol buffers, whose field 14 is a pair of texts, a key and a value.

    Example:
        >>> is_onnx_hasher(Path(__file__))
        False
    """
    size, key = path.stat().st_size, b"\x0a" + bytes([len(HASHER_KEY)]) + HASHER_KEY.encode()
    found = False
    with path.open("rb") as file:
        while file.tell() < size:
            field, kind = divmod(_varint(file), 8)
            if kind == VARINT:
                _varint(file)
                continue
            length = {FIXED64: 8, BYTES: -1, FIXED32: 4}.get(kind)
            if length is None or not field:
                return False
            end = (_varint(file) if length < 0 else length) + file.tell()
            if end > size:
                return False
            found = found or (field == METADATA_FIELD and file.read(len(key)) == key)
            file.seek(end)
    return found


def _varint(file: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            break
        value |= (byte[0] & 127) << shift
        if byte[0] < 128:
            break
    return value
