"""Files of segments: written once, mapped into memory when they are read, deleted when nothing names them.

A file begins with a line that names the format and its version, then eight bytes with the length of a header, the
header in JSON, and the arrays that it lists, each at a multiple of 64 bytes, little-endian. It has a name of its own.
The digest of all its bytes stands in the index's ledger, so a file that is not what was written is refused.
"""

import hashlib
import json
import mmap
import os
import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import flush
from deephash_pipeline.hamming.codes import Codes
from deephash_pipeline.hamming.id_columns import column_from_arrays
from deephash_pipeline.hamming.segments import Contents, Segment, segment_of

MAGIC = b"deephash codes 1\n"
ALIGNMENT = 64
DIGEST_BYTES = 16
DIGESTED_AT_ONCE = 16_384
SomeFeatures = Sequence[tuple[NDArray[Any], NDArray[np.int64]]]
"""Arrays of features, and which rows of each."""
FEATURES_SUFFIX = ".z"
SEGMENT_NAME = re.compile(rf"[0-9a-f]{{32}}({re.escape(FEATURES_SUFFIX)})?")


def made_segment(kept: Iterable[Segment], added: Contents | None, folder: Path | None, code_length: int) -> Segment:
    """Make a segment of the items of others that are not removed, and of what is added, in memory or in a folder.

    Its files survive a power cut, and are mapped into memory; of what was broken off no file stays. Features are copied
    some at a time: they are most of an index.

    Args:
        kept: segments.
        added: items that come after them; with those of segments there is one at least.
        folder: folder of the files; None for memory.
        code_length: bits per code.
    """
    in_memory = folder is None
    rows_of = [(segment, rows) for segment in kept if len(rows := segment.rows())]
    contents = [segment.contents_of(rows, with_features=in_memory) for segment, rows in rows_of]
    features = [(segment.features, rows) for segment, rows in rows_of]
    if added is not None:
        contents.append(added if in_memory else added._replace(features=added.features[:, :0]))
        features.append((added.features, np.arange(len(added.positions))))
    segment = segment_of(contents, uuid.uuid4().hex)
    if folder is None:
        return segment
    try:
        return read_segment(folder, segment.name, _write_files(segment, folder, features), code_length)
    except BaseException:
        delete_segments(folder, [segment.name])
        raise


def _pieces(features: SomeFeatures) -> Iterator[NDArray[Any]]:
    for array, rows in features:
        for start in range(0, len(rows), DIGESTED_AT_ONCE):
            some = rows[start : start + DIGESTED_AT_ONCE]
            yield np.ascontiguousarray(array[some])
            mapping = _mapping_of(array)
            if isinstance(mapping, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
                # What has been read of a mapped file would be counted as memory in use.
                mapping.madvise(mmap.MADV_DONTNEED)


def _mapping_of(array: Any) -> Any:
    """What an array is a view of in the end."""
    while isinstance(array, np.ndarray | memoryview):
        array = array.base if isinstance(array, np.ndarray) else array.obj
    return array


def _write_files(segment: Segment, folder: Path, features: SomeFeatures) -> str:
    """Write the files of a segment; return the digest."""
    codes = segment.codes
    arrays: dict[str, NDArray[Any]] = {"words": codes.words, **segment.ids.arrays()}
    if len(codes.starts):
        arrays |= {"starts": codes.starts, "rows": codes.rows, "code_of": codes.code_of}
    if segment.offsets is not None:
        arrays["offsets"] = segment.offsets
    listed, offset = {}, 0
    for name, array in arrays.items():
        listed[name] = [array.dtype.newbyteorder("<").str, array.shape, offset]
        offset += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
    header = {"first_position": segment.first_position, "arrays": listed}
    some = features[0][0]
    if some.shape[1]:
        header |= {"features": some.shape[1], "feature_dtype": some.dtype.str}
    text = json.dumps(header).encode()
    start = MAGIC + len(text).to_bytes(8, "little") + text
    pieces: list[Any] = [start, bytes(-len(start) % ALIGNMENT)]
    for array in arrays.values():
        pieces += [np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")), bytes(-array.nbytes % ALIGNMENT)]
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    _write(folder / segment.name, pieces, digest)
    if some.shape[1]:
        # Never without the file beside it that says whose it is.
        _write(folder / (segment.name + FEATURES_SUFFIX), _pieces(features))
    flush(folder)
    return digest.hexdigest()


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
    columns, dtype = header.get("features", 0), np.dtype(header.get("feature_dtype", "<f2"))
    features = _read_features(folder / (name + FEATURES_SUFFIX), (len(ids), columns), dtype)
    codes = Codes(words, words.shape[1], len(ids), **grouped)
    return Segment(codes, ids, header["first_position"], arrays.get("offsets"), features, name, digest)


def _read_features(path: Path, shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Map features; they are too many to be read, so that only their number is checked."""
    if not shape[1]:
        return np.empty(shape, dtype=dtype)
    if path.stat().st_size != dtype.itemsize * shape[0] * shape[1]:
        raise InputError(f"{path} is damaged: not {shape[0]} x {shape[1]} numbers long; restore it from a backup.")
    return np.frombuffer(_mapped(path), dtype=dtype).reshape(shape)


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            raise InputError(f"{path} is damaged: it is empty; restore it from a backup.")
        # A private mapping counts as writable, and so needs no second version of the compiled kernels.
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def _write(path: Path, pieces: Iterable[Any], digest: Any = None) -> None:
    with path.open("wb") as file:
        for piece in pieces:
            plain = memoryview(piece).cast("B") if len(piece) else b""
            if digest is not None:
                digest.update(plain)
            file.write(plain)
        file.flush()
        os.fsync(file.fileno())


def segments_in(folder: Path) -> set[str]:
    """Names of the segments that have files in a folder; what only has such a name is of others."""
    names = [path.name for path in folder.iterdir() if SEGMENT_NAME.fullmatch(path.name)]
    return {name for name in {name.removesuffix(FEATURES_SUFFIX) for name in names} if is_segment(folder / name)}


def is_segment(path: Path) -> bool:
    """Tell by its beginning whether a file is that of a segment, or what a killed writer has left of one.

    Example:
        >>> is_segment(Path("missing"))
        False
    """
    try:
        with path.open("rb") as file:
            return MAGIC.startswith(file.read(len(MAGIC)))
    except OSError:
        return False


def delete_segments(folder: Path, names: Iterable[str]) -> None:
    """Delete the files of some segments, also where some are gone."""
    for name in names:
        for suffix in (FEATURES_SUFFIX, ""):
            (folder / (name + suffix)).unlink(missing_ok=True)
