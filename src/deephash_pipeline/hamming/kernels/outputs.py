"""Asymmetric distances between real-valued outputs of a query and the codes of some items."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.machine_code import compiled

PATTERNS = 256


@compiled()
def disagreements(u: NDArray[np.float32], codes: NDArray[np.uint8], distances: NDArray[np.float32]) -> None:
    """Write what the outputs whose bits differ come to, for each code.

    Args:
        u: outputs of one query, float32 (code_length,).
        codes: packed codes, uint8 (items, bytes), bytes beyond those of a code are 0.
        distances: float32 (items,), written.
    """
    used = (len(u) + 7) // 8
    costs: Any = np.zeros((used, PATTERNS), dtype=np.float32)
    for byte in range(used):
        of_byte, size = costs[byte], 1
        # The last bit of a byte first, so that patterns double.
        for bit in range(7, -1, -1):
            place = 8 * byte + bit
            output = u[place] if place < len(u) else np.float32(0)
            for pattern in range(size):
                of_byte[size + pattern] = of_byte[pattern] + max(-output, np.float32(0))
                of_byte[pattern] += max(output, np.float32(0))
            size *= 2
    for item in range(len(codes)):
        total, code = np.float32(0), codes[item]
        for byte in range(used):
            total += costs[byte, code[byte]]
        distances[item] = total
