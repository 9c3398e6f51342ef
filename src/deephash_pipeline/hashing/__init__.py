"""Hash functions: features `z` in, short binary codes out.

One file holds one method. All are used alike:

>>> import numpy as np
>>> from deephash_pipeline.hashing import ITQ, load_encoder
>>> z = np.random.default_rng(0).normal(size=(500, 32)).astype(np.float32)
>>> hash_function = ITQ(code_length=12, random_state=7).fit(z)
>>> hash_function.transform(z).shape
(500, 12)
>>> served = load_encoder("itq", 12, hash_function.arrays())
>>> bool((served.transform(z) == hash_function.transform(z)).all())
True
"""

from deephash_pipeline.hashing.agh import AGH
from deephash_pipeline.hashing.base import Encoder, HashFunction
from deephash_pipeline.hashing.bre import BRE
from deephash_pipeline.hashing.cosdish import COSDISH
from deephash_pipeline.hashing.fast_hash.fast_hash import FastHash
from deephash_pipeline.hashing.fsdh import FSDH
from deephash_pipeline.hashing.itq import ITQ
from deephash_pipeline.hashing.itq_cca import ITQCCA
from deephash_pipeline.hashing.ksh import KSH
from deephash_pipeline.hashing.ldah import LDAH
from deephash_pipeline.hashing.learned import LearnedHashLayer
from deephash_pipeline.hashing.linear import LinearEncoder, LinearHashFunction
from deephash_pipeline.hashing.liong_sdh import LiongSDH
from deephash_pipeline.hashing.lsh import LSH
from deephash_pipeline.hashing.median import Median
from deephash_pipeline.hashing.mlh import MLH
from deephash_pipeline.hashing.one_of_c import OneOfC
from deephash_pipeline.hashing.parameters import parameters_model
from deephash_pipeline.hashing.pca_rotation import PCARotation
from deephash_pipeline.hashing.pcah import PCAH
from deephash_pipeline.hashing.registry import ENCODERS, HASH_FUNCTIONS, load_encoder
from deephash_pipeline.hashing.rotation import RandomRotation
from deephash_pipeline.hashing.sdh import SDH
from deephash_pipeline.hashing.sh import SpectralHashing
from deephash_pipeline.hashing.sign import Sign
from deephash_pipeline.hashing.sph import SphericalHashing
from deephash_pipeline.hashing.srh import SRH

__all__ = [
    "AGH",
    "BRE",
    "COSDISH",
    "ENCODERS",
    "FSDH",
    "HASH_FUNCTIONS",
    "ITQ",
    "ITQCCA",
    "KSH",
    "LDAH",
    "LSH",
    "MLH",
    "PCAH",
    "SDH",
    "SRH",
    "Encoder",
    "FastHash",
    "HashFunction",
    "LearnedHashLayer",
    "LinearEncoder",
    "LinearHashFunction",
    "LiongSDH",
    "Median",
    "OneOfC",
    "PCARotation",
    "RandomRotation",
    "Sign",
    "SpectralHashing",
    "SphericalHashing",
    "load_encoder",
    "parameters_model",
]
