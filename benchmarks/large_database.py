"""A database of a million codes on a disk: `python -m benchmarks.large_database`, or `make bench`.

Every measurement is a process of its own, so that its peak of memory is its own too.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.documents import (
    PROJECT,
    RESULTS,
    markdown_table,
    write_results,
    write_section,
)
from benchmarks.process_memory import MEBIBYTE, process_bytes

SECTION = "large-database"
RESULT_FILE = RESULTS / "large_database.json"
QUERIES, CLASSES, CODE_LENGTH = 10_000, 10, 48
DATABASE_SIZES = (50_000, 200_000, 1_000_000)


def measure(folder: Path, rounds: int) -> dict[str, float]:
    """Count and evaluate a stored benchmark: seconds of the quickest of some rounds, and peak memory in MiB."""
    from deephash_pipeline.retrieval import average_precision, count_distances  # noqa: PLC0415 - part of the memory

    stored = {name: np.load(folder / f"{name}.npy") for name in ("query_codes", "query_labels")}
    mapped = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("database_codes", "database_labels")}
    before = process_bytes("VmHWM") / MEBIBYTE
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        average_precision(count_distances(**stored, **mapped, code_length=CODE_LENGTH))
        seconds.append(time.perf_counter() - start)
    return {
        "wall_seconds": min(seconds),
        "mebibytes_before": before,
        "mebibytes_peak": process_bytes("VmHWM") / MEBIBYTE,
    }


def store(folder: Path, items: int, seed: int = 0) -> None:
    """Write random codes and labels, which are as dear to count as any."""
    rng = np.random.default_rng(seed)
    for name, rows in (("query", QUERIES), ("database", items)):
        np.save(folder / f"{name}_codes.npy", rng.integers(0, 256, (rows, CODE_LENGTH // 8), dtype=np.uint8))
        np.save(folder / f"{name}_labels.npy", rng.integers(0, CLASSES, rows))


def in_new_process(folder: Path, rounds: int) -> dict[str, float]:
    """Run `measure` in a process that has done nothing else."""
    command = [sys.executable, "-m", "benchmarks.large_database", "--measure", str(folder), "--rounds", str(rounds)]
    output = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True, text=True).stdout
    measured: dict[str, float] = json.loads(output)
    return measured


def table(results: dict[str, Any]) -> str:
    """Return what stands between the markers of the document."""
    machine = results["machine"]
    rows = [
        [
            f"{row['items']:,}",
            f"{row['wall_seconds']:.2f}",
            f"{row['mebibytes_before']:.0f}",
            f"{row['mebibytes_peak']:.0f}",
        ]
        for row in results["rows"]
    ]
    note = f"{machine['processor']}, {machine['cores']} cores, load {machine['load_average']} at the start."
    header = ["database", "seconds", "MiB before", "MiB at the peak"]
    return f"{note}\n\n{markdown_table(header, rows)}"


def main() -> None:
    """Measure all sizes and write the table, or take one measurement for the process that has asked for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", type=Path, help="folder of a stored benchmark: print one measurement as JSON")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.measure:
        sys.stdout.write(json.dumps(measure(arguments.measure, arguments.rounds)))
        return
    from benchmarks.measuring import describe_machine  # noqa: PLC0415 - imports PyTorch, which is no part of the memory

    rows = []
    for items in DATABASE_SIZES:
        with tempfile.TemporaryDirectory() as folder:
            store(Path(folder), items)
            rows.append({"items": items, **in_new_process(Path(folder), arguments.rounds)})
    results = {"machine": describe_machine(), "queries": QUERIES, "code_length": CODE_LENGTH, "rows": rows}
    write_results(RESULT_FILE, results)
    write_section(SECTION, table(results))
    print(table(results))


if __name__ == "__main__":
    main()
