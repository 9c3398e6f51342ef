"""What the first evaluation of a process takes: `python -m benchmarks.first_call 12 48` prints seconds as JSON.

Two processes with one NUMBA_CACHE_DIR, empty at first, tell what compiling costs and that only the first one pays.
"""

import json
import sys
import time

START = time.perf_counter()

import numpy as np  # noqa: E402 - imports are part of what is timed

from deephash_pipeline.retrieval import count_distances, pack_bits  # noqa: E402

ITEMS = 2048


def first_calls(code_lengths: list[int]) -> dict[str, float]:
    """Seconds of the imports and, in this order, of the first small count at each code length."""
    seconds = {"imports": time.perf_counter() - START}
    for length in code_lengths:
        codes, labels = pack_bits(np.zeros((ITEMS, length), dtype=bool)), np.zeros(ITEMS, dtype=np.int64)
        start = time.perf_counter()
        count_distances(codes, labels, codes, labels, length)
        seconds[f"{length} bits"] = time.perf_counter() - start
    return seconds


if __name__ == "__main__":
    sys.stdout.write(json.dumps(first_calls([int(length) for length in sys.argv[1:]])))
