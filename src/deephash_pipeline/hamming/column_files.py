"""Numbered columns of metadata as files beside an index, so that a first condition need not read all its rows.

Such a file may be deleted at any time: the ledger has all that it has. One that is damaged, or of another state than
the ledger's, is passed over. It is an archive of NumPy, whose parts have checksums.
"""

import hashlib
import json
import zipfile
from bisect import bisect_left
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.stores import replacing
from deephash_pipeline.hamming.database import named
from deephash_pipeline.hamming.ledger import POSITION, ROW_DIGEST, Ledger

COLUMNS = "columns"
"""A folder of an index that may be deleted."""
WORTH_KEEPING = 65_536
"""Positions from which on reading them takes a while."""
COLUMNS_FORMAT = 1
SAMPLES = 64
"""Rows whose digests tell the state of a ledger from another."""


def keep_values(ledger: Ledger, column: str, codes: NDArray[Any], values: list[Any]) -> None:
    """Write the file of a column of which so many positions are known; where that cannot be, there is none.

    Args:
        ledger: ledger that the column is of.
        column: name of the column.
        codes: number of the value at each position, 0 for none.
        values: the distinct values, of a kind after the other.
    """
    if ledger.path is None or len(codes) < WORTH_KEEPING:
        return
    arrays: dict[str, NDArray[Any]] = {"codes": codes}
    # Numbers stand before all others.
    numbers, others = values[: bisect_left(values, True, key=lambda value: not isinstance(value, int | float))], values
    if numbers and len(set(map(type, numbers))) == 1:
        arrays["numbers"], others = np.array(numbers), values[len(numbers) :]
    of_bytes = sum(isinstance(value, bytes) for value in others)
    # Of bytes JSON knows none.
    others = [value.hex() if isinstance(value, bytes) else value for value in others]
    about = {"format": COLUMNS_FORMAT, "samples": _samples(ledger, len(codes)), "bytes": of_bytes}
    arrays["others"] = np.frombuffer(json.dumps(others).encode(), dtype=np.uint8)
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    with suppress(OSError), replacing(_file_of(ledger.path.parent, column)) as beside:
        np.savez(beside, allow_pickle=False, **arrays)


def kept_values(ledger: Ledger, column: str, stop: int) -> tuple[NDArray[Any], list[Any]] | None:
    """The codes and values of a column's file, of at most so many positions; None where there is no file of use."""
    if ledger.path is None:
        return None
    path = _file_of(ledger.path.parent, column)
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(file["about"].tobytes())
            codes = file["codes"]
            if about["format"] != COLUMNS_FORMAT or len(codes) > stop or not _agrees(ledger, about["samples"]):
                return None
            others = json.loads(file["others"].tobytes())
            numbers = file["numbers"].tolist() if "numbers" in file.files else []
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile):
        return None
    first = next((place for place, value in enumerate(others) if isinstance(value, list)), len(others))
    texts = first - about["bytes"]
    return codes, [
        *numbers,
        *others[:texts],
        *map(bytes.fromhex, others[texts:first]),
        *map(tuple, others[first:]),
    ]


def _file_of(folder: Path, column: str) -> Path:
    return folder / COLUMNS / f"{hashlib.blake2b(column.encode(), digest_size=16).hexdigest()}.npz"


def _samples(ledger: Ledger, stop: int) -> list[tuple[int, int]]:
    """Positions of some rows of metadata before one, spread over all, and their digests."""
    first = f"SELECT {POSITION}, {named(ROW_DIGEST)} FROM metadata WHERE {POSITION} BETWEEN ? AND ? LIMIT 1"
    starts = [place * stop // SAMPLES for place in range(SAMPLES)]
    return [tuple(row) for start in starts for row in ledger.rows(first, (start, stop - 1))]


def _agrees(ledger: Ledger, samples: list[tuple[int, int]]) -> bool:
    """Whether rows have these digests, as far as they are there; some must be."""
    digest = f"SELECT {named(ROW_DIGEST)} FROM metadata WHERE {POSITION} = ?"
    found = [(row[0], wanted) for position, wanted in samples for row in ledger.rows(digest, (position,))]
    return bool(found) and all(there == wanted for there, wanted in found)
