"""Segments: the immutable parts of an index, in memory or as one file each.

A file begins with a line that names the format and its version, then eight bytes with the length of a header, the
header in JSON, and the arrays that it lists, each at a multiple of 64 bytes, little-endian. It is written once, under a
name of its own, and mapped into memory when it is read. The digest of all its bytes stands in the index's ledger, so a
file that is not what was written is refused.
"""

import hashlib
import json
import mmap
import os
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import flush
from deephash_pipeline.search.answers import Ids
from deephash_pipeline.search.ids import MISSING, IdColumn, column_from_arrays, id_column
from deephash_pipeline.search.parts import CodeGroups, group_codes

# Up to so many positions are found by halving: numpy would first convert all there are to the type of those.
FEW = 64
MAGIC = b"deephash codes 1\n"
ALIGNMENT = 64
DIGEST_BYTES = 16
FEATURES_SUFFIX = ".z"


@dataclass(frozen=True, eq=False)
class Contents:
    """Items to make a segment of, in the order of their insertion.

    Attributes:
        words: codes, uint64 (words, items).
        ids: int64 (items,) or object holding `str`.
        positions: int64 (items,), ascending: the item's number in the order of insertion, never used twice.
        features: features, as their `FeatureForm` stores them, (items, columns), or None for an index without.
    """

    words: NDArray[np.uint64]
    ids: Ids
    positions: NDArray[np.int64]
    features: NDArray[Any] | None = None


@dataclass(frozen=True, eq=False)
class Segment:
    """Items that do not change any more, ready to be searched.

    Attributes:
        name: name of its file.
        groups: codes of the items.
        ids: ids of the items.
        positions: int64 (items,), see `Contents`; kept as uint32 offsets, or not at all if they are consecutive.
        first_position: position that offsets are relative to.
        features: features, as in `Contents`, mapped into memory, or None.
        digest: digest of the file's bytes, hexadecimal.
    """

    name: str
    groups: CodeGroups
    ids: IdColumn
    offsets: NDArray[Any] | None
    first_position: int
    features: NDArray[Any] | None
    digest: str = ""

    @property
    def size(self) -> int:
        """Number of items."""
        return len(self.ids)

    def positions_of(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Positions of some rows."""
        offsets = rows if self.offsets is None else self.offsets[rows]
        return self.first_position + offsets.astype(np.int64)

    def rows_of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows at some positions, MISSING where there is none."""
        wanted = np.asarray(positions, dtype=np.int64) - self.first_position
        if self.offsets is None:
            return np.where((wanted >= 0) & (wanted < self.size), wanted, MISSING)
        if len(wanted) <= FEW:
            places = np.array([bisect_left(self.offsets, value) for value in wanted.tolist()], dtype=np.int64)
        else:
            places = np.searchsorted(self.offsets, wanted)
        rows = np.minimum(places, self.size - 1)
        return np.where(self.offsets[rows] == wanted, rows, MISSING)

    def contents_of(self, rows: NDArray[np.int64]) -> Contents:
        """Some of its items, rows ascending, to make another segment of."""
        features = None if self.features is None else self.features[rows]
        return Contents(self.groups.words_of(rows), self.ids.take(rows), self.positions_of(rows), features)


def joined(contents: Iterable[Contents]) -> Contents:
    """Several contents, one after the other."""
    several = list(contents)
    features = [part.features for part in several if part.features is not None]
    return Contents(
        np.concatenate([part.words for part in several], axis=1),
        np.concatenate([part.ids for part in several]),
        np.concatenate([part.positions for part in several]),
        np.concatenate(features) if features else None,
    )


def segment_of(contents: Contents, name: str) -> Segment:
    """Make a segment, in memory, of at least one item."""
    positions = contents.positions
    offsets: NDArray[Any] | None = positions - positions[0]
    if positions[-1] - positions[0] == len(positions) - 1:
        offsets = None
    elif positions[-1] - positions[0] < 2**32:
        offsets = (positions - positions[0]).astype(np.uint32)
    groups = group_codes(np.ascontiguousarray(contents.words))
    return Segment(name, groups, id_column(contents.ids), offsets, int(positions[0]), contents.features)


def write_segment(segment: Segment, folder: Path) -> str:
    """Write a segment's file, and that of its features, so that they survive a power cut; return the digest."""
    groups = segment.groups
    arrays: dict[str, NDArray[Any]] = {"words": groups.words[:, : groups.codes], **segment.ids.arrays()}
    if len(groups.starts):
        arrays |= {"starts": groups.starts, "rows": groups.rows, "code_of": groups.code_of}
    if segment.offsets is not None:
        arrays["offsets"] = segment.offsets
    listed, offset = {}, 0
    for name, array in arrays.items():
        listed[name] = [array.dtype.newbyteorder("<").str, array.shape, offset]
        offset += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    header = {"first_position": segment.first_position, "arrays": listed}
    if segment.features is not None:
        header |= {"features": segment.features.shape[1], "feature_dtype": segment.features.dtype.str}
        _write(folder / (segment.name + FEATURES_SUFFIX), [np.ascontiguousarray(segment.features)])
    text = json.dumps(header).encode()
    start = MAGIC + len(text).to_bytes(8, "little") + text
    pieces: list[Any] = [start, bytes(-len(start) % ALIGNMENT)]
    for array in arrays.values():
        pieces += [np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")), bytes(-array.nbytes % ALIGNMENT)]
    digest = _write(folder / segment.name, pieces)
    flush(folder)
    return digest


def read_segment(folder: Path, name: str, digest: str, code_length: int) -> Segment:
    """Map a segment's file into memory.

    Raises:
        InputError: if the file is not the one that was written.
        FileNotFoundError: if there is none.
    """
    path = folder / name
    mapped = _mapped(path)
    if hashlib.blake2b(mapped, digest_size=DIGEST_BYTES).hexdigest() != digest:
        raise InputError(f"{path} is damaged: its bytes are not those that were written; restore it from a backup.")
    buffer = np.frombuffer(mapped, dtype=np.uint8)
    length = int.from_bytes(mapped[len(MAGIC) : len(MAGIC) + 8], "little")
    header = json.loads(mapped[len(MAGIC) + 8 : len(MAGIC) + 8 + length])
    first = -(-(len(MAGIC) + 8 + length) // ALIGNMENT) * ALIGNMENT
    arrays = {}
    for array, (dtype, shape, offset) in header["arrays"].items():
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        arrays[array] = buffer[first + offset : first + offset + size].view(dtype).reshape(shape)
    words = arrays["words"]
    if len(words) != -(-code_length // 64):
        raise InputError(f"{path} has codes of {64 * len(words)} bits or fewer; it belongs to another index.")
    grouped = {key: arrays[key] for key in ("starts", "rows", "code_of") if key in arrays}
    ids = column_from_arrays(arrays)
    features = None
    if "features" in header:
        dtype = np.dtype(header.get("feature_dtype", "<f2"))
        features = _read_features(folder / (name + FEATURES_SUFFIX), (len(ids), header["features"]), dtype)
    groups = CodeGroups(words, words.shape[1], **grouped)
    return Segment(name, groups, ids, arrays.get("offsets"), header["first_position"], features, digest)


def _read_features(path: Path, shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Map features; they are too many to be read, so that only their number is checked."""
    if path.stat().st_size != dtype.itemsize * shape[0] * shape[1]:
        raise InputError(f"{path} is damaged: not {shape[0]} x {shape[1]} numbers long; restore it from a backup.")
    return np.frombuffer(_mapped(path), dtype=dtype).reshape(shape)


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise InputError(f"{path} is damaged: it is empty; restore it from a backup.")
        # A private mapping counts as writable, and so needs no second version of the compiled kernels.
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def _write(path: Path, pieces: Iterable[Any]) -> str:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    with path.open("wb") as file:
        for piece in pieces:
            plain = memoryview(piece).cast("B") if len(piece) else b""
            digest.update(plain)
            file.write(plain)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()
