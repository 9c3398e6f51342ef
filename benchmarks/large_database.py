"""A database of a million codes on a disk, measured in processes: `python -m benchmarks.large_database`."""

import sys
import tempfile
from functools import partial
from pathlib import Path
from timeit import repeat

import numpy as np

from benchmarks.documents import Benchmark, Results, Settings, three_digits
from benchmarks.processes import MEBIBYTE, in_new_process, process_bytes

QUERIES, CLASSES, CODE_LENGTH = 10_000, 10, 48


def measure_stored(folder: str, rounds: int) -> dict[str, float]:
    """Count and evaluate a stored benchmark: seconds of the quickest of some rounds, and peak memory in MiB."""
    from deephash_pipeline.retrieval import average_precision, count_distances  # noqa: PLC0415 - part of the memory

    stored = {name: np.load(f"{folder}/{name}.npy") for name in ("query_codes", "query_labels")}
    mapped = {name: np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in ("database_codes", "database_labels")}
    before = process_bytes("VmHWM") / MEBIBYTE
    run = partial(count_distances, **stored, **mapped, code_length=CODE_LENGTH)
    seconds = min(repeat(lambda: average_precision(run()), repeat=rounds, number=1))
    return {"seconds": seconds, "MiB before": before, "MiB at the peak": process_bytes("VmHWM") / MEBIBYTE}


def store(folder: Path, items: int, queries: int = QUERIES, seed: int = 0) -> None:
    """Write random codes and labels, which are as dear to count as any."""
    rng = np.random.default_rng(seed)
    for name, rows in (("query", queries), ("database", items)):
        np.save(folder / f"{name}_codes.npy", rng.integers(0, 256, (rows, CODE_LENGTH // 8), dtype=np.uint8))
        np.save(folder / f"{name}_labels.npy", rng.integers(0, CLASSES, rows))


def _measure(settings: Settings) -> Results:
    rows = []
    for items in settings["items"]:
        with tempfile.TemporaryDirectory() as folder:
            store(Path(folder), items)
            measured = in_new_process("benchmarks.large_database:measure_stored", folder, settings["rounds"])
        rows.append({"database": f"{items:,}", **{name: three_digits(value) for name, value in measured.items()}})
    return {"tables": {"sizes": rows}}


LARGE_DATABASE = Benchmark(
    "large_database",
    _measure,
    settings={"items": (50_000, 200_000, 1_000_000), "rounds": 5},
    quick={"items": (50_000,)},
    distributions=("numpy", "numba"),
)

if __name__ == "__main__":
    sys.exit(LARGE_DATABASE.main(__doc__))
