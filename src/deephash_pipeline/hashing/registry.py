"""Methods by name: to make one from settings, or to rebuild a stored one."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray
from pydantic import ValidationError

from deephash_pipeline.errors import InputError
from deephash_pipeline.hashing.base import Encoder, HashFunction
from deephash_pipeline.hashing.itq import ITQ
from deephash_pipeline.hashing.learned import LearnedHashLayer
from deephash_pipeline.hashing.lsh import LSH
from deephash_pipeline.hashing.one_of_c import OneOfC
from deephash_pipeline.hashing.pcah import PCAH
from deephash_pipeline.hashing.sh import SpectralHashing

HASH_FUNCTIONS: dict[str, type[HashFunction]] = {"lsh": LSH, "pcah": PCAH, "itq": ITQ, "sh": SpectralHashing}
ENCODERS: dict[str, type[Encoder]] = {**HASH_FUNCTIONS, "hash_layer": LearnedHashLayer, "one_of_c": OneOfC}


def create_hash_function(
    kind: str, code_length: int, seed: int = 0, parameters: Mapping[str, object] | None = None
) -> HashFunction:
    """An unfitted hash function from settings as a configuration file holds them.

    Args:
        kind: a key of `HASH_FUNCTIONS`.
        code_length: number of bits per code, 1 to 256.
        seed: source of every random draw in `fit`.
        parameters: values of the method's own parameters; those left out take their defaults.

    Raises:
        InputError: the kind is unknown, or a value is refused by the method.
    """
    if kind not in HASH_FUNCTIONS:
        raise InputError(f"hash function {kind!r} is unknown: choose one of {', '.join(HASH_FUNCTIONS)}")
    hash_function = HASH_FUNCTIONS[kind]
    try:
        validated = hash_function.parameters_model.model_validate(dict(parameters or {}))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        known = ", ".join(hash_function.parameters_model.model_fields) or "none"
        raise InputError(f"parameter {name} of {kind}: {first['msg']} (parameters of {kind}: {known})") from error
    return hash_function(code_length, seed, validated)


def load_encoder(kind: str, code_length: int, arrays: Mapping[str, NDArray[Any]]) -> Encoder:
    """Rebuild a stored encoder.

    Args:
        kind: a key of `ENCODERS`.
        code_length: number of bits per code.
        arrays: what the stored encoder's `arrays()` returned.

    Raises:
        InputError: the kind is unknown, or the arrays are not those of this kind.
    """
    if kind not in ENCODERS:
        raise InputError(f"encoder {kind!r} is unknown: choose one of {', '.join(ENCODERS)}")
    return ENCODERS[kind].from_arrays(code_length, arrays)
