"""An index in a folder, in a process of its own."""

import os
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
from deephash_pipeline.hamming import HammingIndex

CODE_LENGTH = 48
NEIGHBOURS = 100
BATCH = 1000
# So many are drawn and added at a time: a hundred million would not fit into memory twice.
ITEMS_AT_ONCE = 10_000_000


def measure_in_new_process(items: int, changes: int) -> dict[str, Any]:
    """Measure an index of so many items, and how much memory all of that takes; a row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        found: dict[str, Any] = in_new_process("benchmarks.index_folders:measure_folder", f"{folder}/x", items, changes)
    return found


def ids_of(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ids in no order, all different, so that they are stored as they are: an odd factor, modulo 2^64."""
    return (rows.astype(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)).view(np.int64)


def codes_of(items: int, seed: int) -> NDArray[np.uint8]:
    """Random codes, packed."""
    return np.random.default_rng(seed).integers(0, 256, (items, CODE_LENGTH // 8), dtype=np.uint8)


def measure_folder(folder: str | Path, items: int, changes: int) -> dict[str, str]:
    """Build an index in a folder, open it, and time single durable changes and the query that sees them."""
    use_one_thread()
    folder = Path(folder)
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
    queries = codes_of(BATCH, items + 1)
    index.search(queries, NEIGHBOURS)
    started = time.process_time()
    index.search(queries, NEIGHBOURS)
    searched = time.process_time() - started
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
    index.close()
    names_of = {"add": "add", "remove": "remove", "fsync": "fsync alone"}
    return {
        "items": f"{items:,}",
        "build, s": f"{built:.1f}",
        "open, s": f"{opened:.2f}",
        "bytes a code": f"{size / items:.0f}",
        "queries a second": f"{BATCH / searched:,.0f}",
        **{f"{shown}, p95 ms": f"{1000 * np.percentile(seconds[name], 95):.1f}" for name, shown in names_of.items()},
        "MiB at the peak": f"{process_bytes('VmHWM') / MEBIBYTE:,.0f}",
    }


def _write_and_sync(file: Any) -> None:
    file.write(bytes(4096))
    os.fsync(file.fileno())


def seconds_of(work: Callable[[], Any]) -> float:
    """Seconds on the wall's clock."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
