"""The folder of an index: which files are its own, and of which kind it is."""

import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.folders import INDEX_FILE, SEGMENTS
from deephash_pipeline.common.stores import TEMPORARY
from deephash_pipeline.hamming.column_files import COLUMNS
from deephash_pipeline.hamming.ledger import UNFINISHED, Ledger
from deephash_pipeline.hamming.locking import LOCK, WriterLock
from deephash_pipeline.hamming.segment_files import FEATURES_SUFFIX, SEGMENT_NAME, is_segment

HASHER = "hasher.safetensors"
ONNX_HASHER = "hasher.onnx"
HASH_FUNCTION = "hash_function.safetensors"
PICTURES = "pictures"
FINGERPRINTS = "fingerprints.npz"
"""A file of an index that may be deleted."""
PICTURE = re.compile(rf"{PICTURES}/[0-9a-f]{{32}}\.png")
SEGMENT = re.compile(rf"{SEGMENTS}/{SEGMENT_NAME.pattern}")
ARCHIVE = re.compile(rf"{COLUMNS}/[0-9a-f]{{32}}\.npz|{re.escape(FINGERPRINTS)}")
OWN_FILE = re.compile(
    rf"{re.escape(INDEX_FILE)}({re.escape(UNFINISHED)})?(-wal|-shm|-journal)?|{re.escape(LOCK)}|"
    rf"{re.escape(ONNX_HASHER)}|{re.escape(HASHER)}(\.provenance\.json)?|{re.escape(HASH_FUNCTION)}"
)
PICTURE_MARK = ("Software", "deephash_pipeline")
"""What the header of a picture says that an index has written."""
PNG, HEADER_BYTES = b"\x89PNG\r\n\x1a\n", 200


def holds_vectors(folder: Path) -> bool:
    """Tell whether an index is one of vectors."""
    return (folder / HASH_FUNCTION).is_file()


def is_empty(folder: Path) -> bool:
    """Tell whether an index has never had an item, and nobody writes it.

    Raises:
        InputError: it is damaged, or being written.
    """
    if not (folder / INDEX_FILE).is_file():
        return False
    lock = WriterLock(folder)
    try:
        with closing(Ledger(folder / INDEX_FILE, read_only=True)) as ledger:
            return not ledger.settings().get("next_position")
    finally:
        lock.release()


def own_files(folder: Path) -> Iterator[Path]:
    """The files of an index.

    Raises:
        InputError: the folder has something that no index makes, or is none.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give the folder of an index")
    for place, folders, files in os.walk(folder):
        below = Path(place)
        for name in (*files, *folders):
            path = below / name
            inside = path.relative_to(folder).as_posix()
            is_folder = name in folders and not path.is_symlink()
            own = (
                OWN_FILE.fullmatch(inside)
                or TEMPORARY.fullmatch(name)
                or any(pattern.fullmatch(inside) and is_own(folder, inside) for pattern, is_own in KNOWN_INSIDE)
            )
            if not (inside in (SEGMENTS, PICTURES, COLUMNS) if is_folder else own):
                raise InputError(f"{folder} has {inside}, which is of no index: move it, or build into another folder")
            if not is_folder:
                yield path


def _is_own_picture(folder: Path, inside: str) -> bool:
    """Tell whether an index has written a picture: its header says so, or the ledger names it."""
    with (folder / inside).open("rb") as file:
        header = file.read(HEADER_BYTES)
    if not header or (header.startswith(PNG) and b"\0".join(map(str.encode, PICTURE_MARK)) in header):
        return True
    return _ledger_says(folder, "metadata", "path", inside)


def _is_own_segment(folder: Path, inside: str) -> bool:
    """Tell whether an index has written a file of codes or features: so it begins, or the ledger names it."""
    path = folder / inside.removesuffix(FEATURES_SUFFIX)
    return is_segment(path) or _ledger_says(folder, "segments", "name", path.name)


def _is_own_archive(folder: Path, inside: str) -> bool:
    """Tell whether an archive is a column's, or has fingerprints, by the names of its parts."""
    try:
        with zipfile.ZipFile(folder / inside) as parts:
            return {"about.npy", "greys.npy" if inside == FINGERPRINTS else "codes.npy"} <= set(parts.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _ledger_says(folder: Path, table: str, column: str, value: str) -> bool:
    if not (folder / INDEX_FILE).is_file():
        return False
    with closing(Ledger(folder / INDEX_FILE, read_only=True)) as ledger:
        if table == "metadata" and column not in ledger.columns():
            return False
        return bool(ledger.rows(f"SELECT 1 FROM {table} WHERE {column} = ? LIMIT 1", [value]))


KNOWN_INSIDE = ((PICTURE, _is_own_picture), (SEGMENT, _is_own_segment), (ARCHIVE, _is_own_archive))


def delete_index(folder: Path) -> None:
    """Delete an index, and the folder if it then is empty; other files stay.

    Raises:
        InputError: the folder has something that no index makes.
    """
    for path in list(own_files(folder)):
        path.unlink(missing_ok=True)
    for path in (folder / SEGMENTS, folder / PICTURES, folder / COLUMNS, folder):
        with suppress(OSError):
            path.rmdir()
