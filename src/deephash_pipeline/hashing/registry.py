"""Methods by key: to make one, or to rebuild a stored one."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from deephash_pipeline.errors import InputError
from deephash_pipeline.hashing.agh import AGH
from deephash_pipeline.hashing.base import Encoder, HashFunction
from deephash_pipeline.hashing.bre import BRE
from deephash_pipeline.hashing.cosdish import COSDISH
from deephash_pipeline.hashing.fast_hash import FastHash
from deephash_pipeline.hashing.fsdh import FSDH
from deephash_pipeline.hashing.itq import ITQ
from deephash_pipeline.hashing.itq_cca import ITQCCA
from deephash_pipeline.hashing.ksh import KSH
from deephash_pipeline.hashing.ldah import LDAH
from deephash_pipeline.hashing.learned import LearnedHashLayer
from deephash_pipeline.hashing.liong_sdh import LiongSDH
from deephash_pipeline.hashing.lsh import LSH
from deephash_pipeline.hashing.mlh import MLH
from deephash_pipeline.hashing.one_of_c import OneOfC
from deephash_pipeline.hashing.pcah import PCAH
from deephash_pipeline.hashing.sdh import SDH
from deephash_pipeline.hashing.sh import SpectralHashing
from deephash_pipeline.hashing.sph import SphericalHashing

HASH_FUNCTIONS: dict[str, type[HashFunction]] = {
    "lsh": LSH,
    "pcah": PCAH,
    "itq": ITQ,
    "sh": SpectralHashing,
    "ldah": LDAH,
    "bre": BRE,
    "mlh": MLH,
    "ksh": KSH,
    "liong_sdh": LiongSDH,
    "agh": AGH,
    "sph": SphericalHashing,
    "itq_cca": ITQCCA,
    "sdh": SDH,
    "fsdh": FSDH,
    "cosdish": COSDISH,
    "fast_hash": FastHash,
}
"""Methods that learn from z, in the order of tables and figures: the paper's, then others of the field."""

ENCODERS: dict[str, type[Encoder]] = {**HASH_FUNCTIONS, "hash_layer": LearnedHashLayer, "one_of_c": OneOfC}


def load_encoder(kind: str, code_length: int, arrays: Mapping[str, NDArray[Any]]) -> Encoder:
    """Rebuild a stored encoder.

    Args:
        kind: a key of `ENCODERS`.
        code_length: number of bits per code.
        arrays: what the stored encoder's `arrays()` returned.

    Raises:
        InputError: the kind is unknown, or the arrays are not those of this kind.

    Example:
        >>> import numpy as np
        >>> load_encoder("lsh", 1, {"projection": np.ones((2, 1)), "threshold": [3.0]}).transform([[1, 2]])
        array([[ True]])
    """
    if kind not in ENCODERS:
        raise InputError(f"encoder {kind!r} is unknown: choose one of {', '.join(ENCODERS)}")
    return ENCODERS[kind].from_arrays(code_length, arrays)
