"""MNIST's own file format, IDX: a big-endian header (type, dimensions, sizes), then the bytes; often gzipped."""

import gzip
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.images.sources.collection import ImageCollection, ImageSet
from deephash_pipeline.images.sources.source import ImageSource

GZIP_MAGIC = b"\x1f\x8b"
UNSIGNED_BYTE = 0x08
CONTENTS = {1: "labels", 3: "images"}
ORIGIN = "https://ossci-datasets.s3.amazonaws.com/mnist/"


class IdxSource(ImageSource):
    """MNIST and what shares its format; the names are those of the four files below the raw folder."""

    kind: Literal["idx"]
    training_images: str = "train-images-idx3-ubyte.gz"
    training_labels: str = "train-labels-idx1-ubyte.gz"
    query_images: str = "t10k-images-idx3-ubyte.gz"
    query_labels: str = "t10k-labels-idx1-ubyte.gz"
    class_names: tuple[str, ...] = tuple("0123456789")

    def read(self, folder: Path) -> ImageCollection:
        """Read the four files."""
        files = {
            "training": (folder / self.training_images, folder / self.training_labels),
            "query": (folder / self.query_images, folder / self.query_labels),
        }
        return read_idx_collection(files, self.class_names)


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Read one IDX file of unsigned bytes, gzipped or plain whatever its name says.

    Args:
        path: the file; where it is missing, its namesake with or without `.gz` is read.
        dimensions: 3 for images (n, h, w), 1 for labels (n,).

    Raises:
        InputError: if the file is missing, damaged, truncated, too long, not IDX, or has labels where images are
            expected.

    Example:
        >>> from tempfile import NamedTemporaryFile
        >>> with NamedTemporaryFile() as file:
        ...     _ = Path(file.name).write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9]))
        ...     read_idx(Path(file.name), dimensions=1)
        array([7, 9], dtype=uint8)
    """
    path = _find(path)
    content = _decompressed(path)
    header = 4 + 4 * dimensions
    if len(content) < 4 or content[:3] != bytes([0, 0, UNSIGNED_BYTE]):
        raise InputError(f"{path} does not start like an IDX file of unsigned bytes (00 00 08): download it anew.")
    if content[3] != dimensions:
        found = CONTENTS.get(content[3], "something else")
        raise InputError(
            f"{path} contains {found} ({content[3]} dimensions) where {CONTENTS[dimensions]} ({dimensions}) are "
            "expected: are the file names of images and labels swapped?"
        )
    if len(content) < header:
        raise InputError(f"{path} is truncated within its header: download it anew.")
    shape = struct.unpack(f">{dimensions}I", content[4:header])
    expected = header + int(np.prod(shape, dtype=object))
    if len(content) != expected:
        fault = "truncated" if len(content) < expected else "too long"
        raise InputError(
            f"{path} is {fault}: its header announces {expected} bytes, it has {len(content)}; download it anew."
        )
    return np.frombuffer(content, dtype=np.uint8, offset=header).reshape(shape).copy()


def read_idx_collection(
    files: dict[str, tuple[Path, Path]], class_names: Sequence[str] = tuple("0123456789")
) -> ImageCollection:
    """Read pairs of image and label files into the splits of a collection.

    Args:
        files: split name -> (image file, label file).
        class_names: names of the labels 0, 1, ...

    Returns:
        Splits with images (n, 1, h, w); ids are "<split>/<position in the file>".

    Raises:
        InputError: see `read_idx`; also if a pair differs in number or the splits differ in image size.
    """
    splits: dict[str, ImageSet] = {}
    for split, (image_file, label_file) in files.items():
        images, labels = read_idx(image_file, 3), read_idx(label_file, 1)
        if len(images) != len(labels):
            raise InputError(
                f"{image_file} has {len(images)} images but {label_file} {len(labels)} labels: "
                "take both files from the same data set and split."
            )
        ids = [f"{split}/{row:05d}" for row in range(len(labels))]
        splits[split] = ImageSet(images[:, np.newaxis], labels.astype(np.int64), ids)
    return ImageCollection(splits, list(class_names))


def _find(path: Path) -> Path:
    namesake = path.with_suffix("") if path.suffix == ".gz" else path.with_name(f"{path.name}.gz")
    for candidate in (path, namesake):
        if candidate.is_file():
            return candidate
    raise InputError(
        f"{path} is missing: get it from {ORIGIN} with "
        f"`python -m deephash_pipeline.images download mnist {path.parent}`, or put your own IDX file there."
    )


def _decompressed(path: Path) -> bytes:
    content = path.read_bytes()
    if not content.startswith(GZIP_MAGIC):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} is truncated or damaged ({error}): download it anew.") from error
