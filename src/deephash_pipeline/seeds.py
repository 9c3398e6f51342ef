"""Every random draw is a function of the configured seed and of where it happens, never of call order."""

import zlib

import numpy as np


def derive_seed(seed: int, *place: int | str) -> int:
    """Derive an independent 63-bit seed from the configured one and a place such as ``("augmentation", epoch, step)``.

    The same arguments give the same number on every machine, so an interrupted run can redo any step alone.
    """
    words = [zlib.crc32(part.encode()) if isinstance(part, str) else part for part in place]
    state = np.random.SeedSequence([seed, *words]).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))
