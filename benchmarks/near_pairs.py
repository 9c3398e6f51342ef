"""All near pairs beside a search of faiss for every code: `python -m benchmarks.near_pairs`.

CPU seconds of one thread; faiss's are extrapolated from some of the queries. `--items 100000` makes fewer codes.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import describe_run, use_one_thread
from deephash_pipeline.common.errors import InputError
from deephash_pipeline.hamming import HammingIndex

POINTS = 3000
WARM_UP = 1000


class Case(NamedTuple):
    """Codes and a radius; clustered ones are signs of points between two others, as near pictures have."""

    code_length: int
    radius: int
    clustered: bool = True


CASES = (Case(64, 8), Case(128, 8, clustered=False), Case(128, 8), Case(256, 8), Case(128, 16))


def draw(case: Case, items: int) -> NDArray[np.uint8]:
    """Packed codes, uint8 (items, bytes)."""
    rng = np.random.default_rng(case.code_length)
    if not case.clustered:
        return rng.integers(0, 256, (items, case.code_length // 8), dtype=np.uint8)
    points = rng.standard_normal((POINTS, case.code_length), dtype=np.float32)
    codes = np.empty((items, case.code_length // 8), dtype=np.uint8)
    for start in range(0, items, 50_000):
        some = codes[start : start + 50_000]
        one, other = rng.integers(0, POINTS, (2, len(some)))
        share = rng.uniform(0.1, 0.9, (len(some), 1)).astype(np.float32)
        some[:] = np.packbits(share * points[one] + (1 - share) * points[other] > 0, axis=1)
    return codes


def compare(case: Case, items: int, queries: int) -> dict[str, str]:
    """Time both, and check that they find as many pairs of the queries; a row."""
    import faiss  # noqa: PLC0415 - not a dependency of the project

    faiss.omp_set_num_threads(1)
    codes = draw(case, items)
    index, flat = HammingIndex(case.code_length), faiss.IndexBinaryFlat(case.code_length)
    few = HammingIndex(case.code_length)
    few.add(np.arange(WARM_UP), codes[:WARM_UP])
    list(few.pairs(case.radius))
    index.add(np.arange(items), codes)
    flat.add(codes)
    start = time.process_time()
    pairs, of_queries = 0, 0
    for block in index.pairs(case.radius):
        pairs += len(block)
        of_queries += int((block.first < queries).sum()) + int((block.second < queries).sum())
    ours = time.process_time() - start
    start = time.process_time()
    found = flat.range_search(codes[:queries], case.radius + 1)[0][-1]
    theirs = (time.process_time() - start) * items / queries
    assert int(found) == of_queries + queries, f"faiss finds {found - queries} pairs, the index {of_queries}"
    return {
        "codes": f"{case.code_length} bits, {'clustered' if case.clustered else 'random'}, radius {case.radius}",
        "pairs": f"{pairs:,}",
        "faiss, CPU s": f"{theirs:.0f}",
        "index, CPU s": f"{ours:.1f}",
        "times as fast": f"{theirs / ours:.0f}",
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all cases; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=500)
    given = parser.parse_args(arguments)
    use_one_thread()
    try:
        print(describe_run(["numpy", "numba", "faiss-cpu"]))
    except InputError as error:
        print(error, file=sys.stderr)
        return 1
    for case in CASES:
        print(", ".join(f"{name}: {value}" for name, value in compare(case, given.items, given.queries).items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
