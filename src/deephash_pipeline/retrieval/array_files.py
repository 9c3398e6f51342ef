"""Files of NumPy whose headers may say anything."""

import math
import os
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

LARGEST_RATIO = 1032
"""Deflate makes no more bytes of one."""


def open_arrays(path: Path | str) -> "NpzFile[Any] | NDArray[Any]":
    """Open an ``.npz``, or map an ``.npy`` into memory, whose arrays the bytes that are there can fill.

    NumPy takes memory for what a header claims before it reads.

    Raises:
        OSError: the file cannot be read.
        ValueError, zipfile.BadZipFile, EOFError: it is damaged, or a header claims more than there is.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as whole:
        _check_size(whole, size)
    file: NpzFile[Any] | NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    if isinstance(file, NpzFile) and file.zip is not None:
        try:
            for entry in file.zip.infolist():
                with file.zip.open(entry) as member:
                    _check_size(member, min(entry.file_size, LARGEST_RATIO * min(entry.compress_size, size)))
        except BaseException:
            file.close()
            raise
    return file


def _check_size(file: IO[bytes], there: int) -> None:
    """Refuse an array whose header claims more than the bytes that are there; what is no array is let pass."""
    try:
        version = np.lib.format.read_magic(file)
    except ValueError:
        return
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if math.prod(shape) * dtype.itemsize > there:
        raise ValueError(f"a header claims the shape {shape}, of which {there:,} bytes are there")
