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

from typing import Any

from deephash_pipeline.hashing.encoder import Encoder
from deephash_pipeline.hashing.hash_function import HashFunction
from deephash_pipeline.hashing.linear import LinearEncoder, LinearHashFunction
from deephash_pipeline.hashing.parameters import hash_function_model
from deephash_pipeline.hashing.registry import ENCODERS, HASH_FUNCTIONS, load_encoder, require_hash_function

__all__ = [
    "ENCODERS",
    "HASH_FUNCTIONS",
    "Encoder",
    "HashFunction",
    "LinearEncoder",
    "LinearHashFunction",
    "hash_function_model",
    "load_encoder",
    "require_hash_function",
]


def __getattr__(name: str) -> Any:
    return ENCODERS.class_named(name)
