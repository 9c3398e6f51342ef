"""Methods by key: to make one, or to rebuild a stored one."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.registry import Registry
from deephash_pipeline.hashing.encoder import Encoder
from deephash_pipeline.hashing.hash_function import HashFunction

HASH_FUNCTIONS: Registry[type[HashFunction]] = Registry(
    {
        "lsh": ".lsh:LSH",
        "pcah": ".pcah:PCAH",
        "itq": ".itq:ITQ",
        "sh": ".sh:SpectralHashing",
        "ldah": ".ldah:LDAH",
        "bre": ".bre:BRE",
        "mlh": ".mlh:MLH",
        "ksh": ".ksh:KSH",
        "liong_sdh": ".liong_sdh:LiongSDH",
        "lsh_centred": ".lsh:CentredLSH",
        "agh": ".agh:AGH",
        "sph": ".sph:SphericalHashing",
        "itq_cca": ".itq_cca:ITQCCA",
        "sdh": ".sdh:SDH",
        "fsdh": ".fsdh:FSDH",
        "cosdish": ".cosdish:COSDISH",
        "fast_hash": ".fast_hash.fast_hash:FastHash",
        "sign": ".sign:Sign",
        "median": ".median:Median",
        "rotation": ".rotation:RandomRotation",
        "pca_rotation": ".pca_rotation:PCARotation",
        "srh": ".srh:SRH",
    },
    __package__,
)
"""Methods that learn from z, in the order of tables and figures: the paper's, then others of the field."""

ENCODERS: Registry[type[Encoder]] = Registry(
    {"hash_layer": ".learned:LearnedHashLayer", "one_of_c": ".one_of_c:OneOfC"}, __package__, HASH_FUNCTIONS
)


def require_hash_function(method: str) -> None:
    """Refuse a method that is not in `HASH_FUNCTIONS`.

    Raises:
        InputError: it is not.
    """
    if method not in HASH_FUNCTIONS:
        raise InputError(f"hash function {method!r} is unknown: choose one of {', '.join(HASH_FUNCTIONS)}")


def load_encoder(kind: str, code_length: int, arrays: Mapping[str, NDArray[Any]]) -> Encoder:
    """Rebuild a stored encoder.

    Args:
        kind: a key of `ENCODERS`.
        code_length: number of bits per code.
        arrays: arrays that the stored encoder's `arrays()` returned.

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
