"""What the first loss of a process takes: `python -m benchmarks.loss_first_call` prints seconds as JSON.

Two processes with one NUMBA_CACHE_DIR, empty at first, tell what compiling costs and that only the first one pays.
"""

import json
import sys
import time

START = time.perf_counter()

from benchmarks.rival_losses import LOSSES, gradient_of, random_batch  # noqa: E402 - imports are part of what is timed

SAMPLES, CODE_LENGTH, CLASSES = 40, 12, 2


def first_calls(losses: list[str]) -> dict[str, float]:
    """Seconds of the imports and, in this order, of the first small batch of each loss."""
    seconds = {"imports": time.perf_counter() - START}
    u, labels = random_batch(SAMPLES, CODE_LENGTH, CLASSES)
    for name in losses:
        start = time.perf_counter()
        gradient_of(LOSSES[name], u, labels)
        seconds[name] = time.perf_counter() - start
    return seconds


if __name__ == "__main__":
    sys.stdout.write(json.dumps(first_calls(sys.argv[1:])))
