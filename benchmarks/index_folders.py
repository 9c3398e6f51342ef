"""An index in a folder, in a process of its own: `python -m benchmarks.index_folders FOLDER ITEMS CHANGES`."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import use_one_thread
from benchmarks.processes import MEBIBYTE, in_new_process, process_bytes
from deephash_pipeline.search import HammingIndex

CODE_LENGTH = 48
NEIGHBOURS = 100
BATCH = 1000
# So many are drawn and added at a time: a hundred million would not fit into memory twice.
ITEMS_AT_ONCE = 10_000_000


def measure_in_new_process(items: int, changes: int) -> dict[str, Any]:
    """Measure an index of so many items, and how much memory all of that takes."""
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Any] = in_new_process("-m", "benchmarks.index_folders", folder, items, changes)
    return found


def ids_of(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ids in no order, all different, so that they are stored as they are: an odd factor, modulo 2^64."""
    return (rows.astype(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)).view(np.int64)


def codes_of(items: int, seed: int) -> NDArray[np.uint8]:
    """Random codes, packed."""
    return np.random.default_rng(seed).integers(0, 256, (items, CODE_LENGTH // 8), dtype=np.uint8)


def measure_folder(items: int, folder: Path, changes: int) -> dict[str, Any]:
    """Build an index in a folder, open it, and time single durable changes and the query that sees them."""
    started = time.perf_counter()
    with HammingIndex.create(folder, CODE_LENGTH) as index:
        for first in range(0, items, ITEMS_AT_ONCE):
            rows = np.arange(first, min(first + ITEMS_AT_ONCE, items))
            index.add(ids_of(rows), codes_of(len(rows), first))
    built = time.perf_counter() - started
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    started = time.perf_counter()
    index = HammingIndex.open(folder)
    opened = time.perf_counter() - started
    result = {"items": items, "build_seconds": built, "open_seconds": opened, "bytes_per_item": size / items}
    queries = codes_of(BATCH, items + 1)
    index.search(queries, NEIGHBOURS)
    started = time.process_time()
    index.search(queries, NEIGHBOURS)
    result["queries_per_second"] = BATCH / (time.process_time() - started)
    seconds: dict[str, list[float]] = {"add": [], "remove": [], "fsync": []}
    new, names = codes_of(changes, items + 2), ids_of(np.arange(items + changes)[-changes:])
    gone = ids_of(np.arange(changes))
    probe = folder.parent / "probe"
    with probe.open("wb", buffering=0) as file:
        for row in range(changes):
            one = slice(row, row + 1)
            seconds["add"].append(seconds_of(partial(index.add, names[one], new[one])))
            if index.search(new[one], 1).distances[0, 0] != 0:
                raise AssertionError("an added item was not found by the next query")
            seconds["remove"].append(seconds_of(partial(index.remove, gone[one])))
            # What one synchronised write costs on this disk, without any index.
            seconds["fsync"].append(seconds_of(partial(_write_and_sync, file)))
    for name, each in seconds.items():
        result[f"{name}_p50_ms"], result[f"{name}_p95_ms"] = (1000 * np.percentile(each, [50, 95])).tolist()
    index.close()
    return result


def _write_and_sync(file: Any) -> None:
    file.write(bytes(4096))
    os.fsync(file.fileno())


def seconds_of(work: Callable[[], Any]) -> float:
    """Seconds on the wall's clock."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    use_one_thread()
    measured = measure_folder(int(sys.argv[2]), Path(sys.argv[1]) / "index", int(sys.argv[3]))
    print(json.dumps({**measured, "mebibytes_peak": process_bytes("VmHWM") / MEBIBYTE}))
