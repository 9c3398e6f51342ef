"""An array of images that grows on disk while they are decoded, and stays there: no image is decoded twice.

Beside the `.npy` file of a split lies a list of digests: what it is made by, which run was forced to make it anew, and
one per image. That of an image is written after its pixels, so a row whose pixels still have it is whole, whatever
happened to the process or the machine; a killed run goes on there, and a later one finds all of it. Both files are
written, not mapped: the memory stays flat, and a full disk is an error and not a crash.
"""

import hashlib
import io
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.progress import track
from deephash_pipeline.common.working_place import FORCED
from deephash_pipeline.common.writing import cannot_write
from deephash_pipeline.images.batches import image_batches
from deephash_pipeline.images.decoding.image_files import ImageFiles

logger = logging.getLogger(__name__)

IMAGE_DIGEST_BYTES = 16
PENDING = bytes(IMAGE_DIGEST_BYTES)
HEAD = 2
"""Digests before those of the images."""
IMAGES_AT_ONCE = 64


def digest(pixels: bytes) -> bytes:
    """Return 16 bytes that stand for the pixels of an image."""
    return hashlib.blake2b(pixels, digest_size=IMAGE_DIGEST_BYTES).digest()


class DecodedArray:
    """The working files of one split.

    Args:
        files: files to decode.
        split: name of the split, and of its files.
        folder: folder where the arrays lie; best on the disk of the finished arrays.
        provenance: what the run is made by; see `WorkingPlace`.

    Attributes:
        digests: digests of the pixels of each row; `PENDING` where the row is not decoded or its file is broken.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from PIL import Image
        >>> with TemporaryDirectory() as folder:
        ...     Image.new("L", (4, 4), "white").save(Path(folder, "a.png"))
        ...     array = DecodedArray(ImageFiles(Path(folder), ["a.png", "lost.png"], 2, 1), "training", Path(folder))
        ...     broken = list(array.decode())
        ...     array.whole_images().tolist()
        [[[[255, 255], [255, 255]]]]
        >>> broken[0][0]
        1
    """

    def __init__(
        self, files: ImageFiles, split: str, folder: Path, provenance: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._files = files
        self._split = split
        self._folder = folder
        self._array, self._array_without_broken, self._digests = (
            folder / f"{split}{suffix}" for suffix in (".npy", ".whole.npy", ".digests")
        )
        self._header_bytes = len(_header(files.shape))
        self._row_bytes = int(np.prod(files.shape[1:]))
        self._fingerprint = _fingerprint(files, provenance)
        self._forced = digest(forced.encode()) if (forced := provenance.get(FORCED)) else PENDING
        self.digests = [PENDING] * len(files)

    def decode(self) -> Iterator[tuple[int, str]]:
        """Decode what is not decoded yet, in parallel, and yield row and reason of each broken file, in their order.

        Raises:
            InputError: if the disk is full, or the working folder cannot be written to.
        """
        with _written(self._array):
            if not self._resume():
                self._start()
        with _written(self._array), self._array.open("r+b") as array, self._digests.open("r+b") as digests:
            pending = [row for row, known in enumerate(self.digests) if known != digest(self._stored(array, row))]
            rows = self._decoded(pending, array, digests)
            for row, reason in track(rows, f"decoding {self._split}", total=len(pending)):
                if reason is not None:
                    yield row, reason

    def _decoded(self, pending: list[int], array: IO[bytes], digests: IO[bytes]) -> Iterator[tuple[int, str | None]]:
        paths = (self._files.root / self._files.names[row] for row in pending)
        shape = (self._files.channels, self._files.image_size, self._files.image_size)
        for batch in image_batches(paths, shape, IMAGES_AT_ONCE, errors="skip"):
            for place, pixels in zip(batch.rows.tolist(), batch.pixels, strict=True):
                row = pending[place]
                self.digests[row] = digest(pixels.tobytes())
                array.seek(self._offset(row))
                array.write(pixels.tobytes())
                digests.seek((HEAD + row) * IMAGE_DIGEST_BYTES)
                digests.write(self.digests[row])
            array.flush()
            digests.flush()
            yield from ((pending[place], None) for place in batch.rows.tolist())
            for skipped in batch.skipped:
                self.digests[pending[skipped.row]] = PENDING
                yield pending[skipped.row], skipped.reason

    def whole_rows(self) -> NDArray[np.int64]:
        """Return the rows that are decoded."""
        return np.array([row for row, known in enumerate(self.digests) if known != PENDING], dtype=np.int64)

    def whole_images(self) -> NDArray[np.uint8]:
        """Return a memory map, read only, of the images that are not broken.

        Raises:
            InputError: if the disk is full.
        """
        whole = self.whole_rows()
        if len(whole) == len(self._files):
            return _mapped(self._array)
        # A copy of a former run may by now be a name of the finished file, which must not be written to.
        path = self._array_without_broken
        path.unlink(missing_ok=True)
        with _written(path), self._array.open("rb") as array, path.open("xb") as copy:
            copy.write(_header((len(whole), *self._files.shape[1:])))
            for row in whole:
                copy.write(self._stored(array, row))
        return _mapped(path)

    def _start(self) -> None:
        # Digests first: without them the rest is not taken for anything.
        for path in (self._digests, self._array, self._array_without_broken):
            path.unlink(missing_ok=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._array.open("xb") as array:
            array.write(_header(self._files.shape))
            array.truncate(self._offset(len(self._files)))
        self._digests.write_bytes(self._fingerprint + self._forced + b"".join(self.digests))

    def _resume(self) -> bool:
        """Take up the files of a former run; return whether there are any that fit."""
        if not self._digests.is_file() or not self._array.is_file():
            return False
        recorded = self._digests.read_bytes()
        made_by, known = recorded[: HEAD * IMAGE_DIGEST_BYTES], recorded[HEAD * IMAGE_DIGEST_BYTES :]
        sizes = (len(known), self._array.stat().st_size)
        expected = (len(self._files) * IMAGE_DIGEST_BYTES, self._offset(len(self._files)))
        ours = self._fingerprint + (made_by[IMAGE_DIGEST_BYTES:] if self._forced == PENDING else self._forced)
        if sizes != expected or made_by != ours:
            logger.info("%s: other images, size or code, or --force: all are decoded anew", self._split)
            return False
        self.digests = [known[start : start + IMAGE_DIGEST_BYTES] for start in range(0, len(known), IMAGE_DIGEST_BYTES)]
        whole = len(self.digests) - self.digests.count(PENDING)
        logger.info("%s: %d of %d images are decoded already", self._split, whole, len(self.digests))
        return True

    def _stored(self, array: IO[bytes], row: int) -> bytes:
        array.seek(self._offset(row))
        return array.read(self._row_bytes)

    def _offset(self, row: int) -> int:
        return self._header_bytes + row * self._row_bytes


def _fingerprint(files: ImageFiles, provenance: Mapping[str, str]) -> bytes:
    """Return what changes if a file is added, removed or replaced, with other code, or another size or mode."""
    made_by = sorted((name, known) for name, known in provenance.items() if name != FORCED)
    seen = hashlib.blake2b(f"{files.image_size} {files.channels} {made_by}".encode(), digest_size=IMAGE_DIGEST_BYTES)
    for name in files.names:
        seen.update(f"\0{name}".encode())
        with suppress(OSError):
            status = os.stat(files.root / name)
            seen.update(f"\0{status.st_size} {status.st_mtime_ns}".encode())
    return seen.digest()


def _header(shape: tuple[int, ...]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return buffer.getvalue()


def _mapped(path: Path) -> NDArray[np.uint8]:
    images: NDArray[np.uint8] = np.load(path, mmap_mode="r", allow_pickle=False)
    return images


@contextmanager
def _written(path: Path) -> Iterator[None]:
    """Raise an InputError, of one line, for a file that cannot be written."""
    try:
        yield
    except OSError as error:
        raise cannot_write(path, error, ", and run again: what is decoded is kept") from error
