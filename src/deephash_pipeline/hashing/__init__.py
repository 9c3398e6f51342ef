"""Hash functions: features `z` in, short binary codes out.

One file holds one method. All are used alike:

>>> import numpy as np
>>> from deephash_pipeline.hashing import ITQ, load_encoder
>>> z = np.random.default_rng(0).normal(size=(500, 32)).astype(np.float32)
>>> hash_function = ITQ(code_length=12, seed=7).fit(z)
>>> hash_function.encode(z).shape
(500, 12)
>>> served = load_encoder("itq", 12, hash_function.arrays())
>>> bool((served.encode(z) == hash_function.encode(z)).all())
True
"""

from deephash_pipeline.hashing.base import Encoder, HashFunction, HashParameters
from deephash_pipeline.hashing.bre import BRE, BREParameters
from deephash_pipeline.hashing.itq import ITQ, ITQParameters
from deephash_pipeline.hashing.ksh import KSH, KSHParameters
from deephash_pipeline.hashing.ldah import LDAH, LDAHParameters
from deephash_pipeline.hashing.learned import LearnedHashLayer
from deephash_pipeline.hashing.linear import LinearEncoder, LinearHashFunction
from deephash_pipeline.hashing.liong_sdh import LiongSDH, LiongSDHParameters
from deephash_pipeline.hashing.lsh import LSH, LSHParameters
from deephash_pipeline.hashing.mlh import MLH, MLHParameters
from deephash_pipeline.hashing.one_of_c import OneOfC
from deephash_pipeline.hashing.pcah import PCAH, PCAHParameters
from deephash_pipeline.hashing.registry import ENCODERS, HASH_FUNCTIONS, load_encoder
from deephash_pipeline.hashing.sh import SpectralHashing, SpectralHashingParameters

__all__ = [
    "BRE",
    "ENCODERS",
    "HASH_FUNCTIONS",
    "ITQ",
    "KSH",
    "LDAH",
    "LSH",
    "MLH",
    "PCAH",
    "BREParameters",
    "Encoder",
    "HashFunction",
    "HashParameters",
    "ITQParameters",
    "KSHParameters",
    "LDAHParameters",
    "LSHParameters",
    "LearnedHashLayer",
    "LinearEncoder",
    "LinearHashFunction",
    "LiongSDH",
    "LiongSDHParameters",
    "MLHParameters",
    "OneOfC",
    "PCAHParameters",
    "SpectralHashing",
    "SpectralHashingParameters",
    "load_encoder",
]
