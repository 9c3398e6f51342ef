"""A folder of codes: a file for each block of a source, with a name known in advance, and what all were made from."""

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import is_remote, joined, local_path, names_in, reached, read_bytes, write_whole
from deephash_pipeline.deephash import ImageHasher
from deephash_pipeline.provenance.arrays import arrays_digest
from deephash_pipeline.search.encoding.listing import Source

FORMAT = 1
MANIFEST = "encoding.json"
HASHER = "hasher.safetensors"
BLOCK = re.compile(r"codes-(\d{9,})\.safetensors")
LEFTOVER = re.compile(r"\.codes-\d{9,}\.[\w.-]+-[0-9a-f]{32}\.safetensors")
KEY = "deephash_pipeline.codes"


class Broken(NamedTuple):
    """An image that cannot be decoded, and why.

    Example:
        >>> Broken("2.png", "the file is empty").reason
        'the file is empty'
    """

    name: str
    reason: str


class CodeBlock(NamedTuple):
    """The codes of a block of images.

    Attributes:
        names: ids of the images that could be read.
        codes: uint8 of shape (n, ceil(code_length / 8)), packed as by `deephash_pipeline.retrieval.pack_bits`.
        labels: names of their classes; None for none.
        broken: the other images.

    Example:
        >>> CodeBlock(["1.png"], np.array([[7]], np.uint8), ["cat"], [Broken("2.png", "empty")]).codes.shape
        (1, 1)
    """

    names: list[str]
    codes: NDArray[np.uint8]
    labels: list[str | None]
    broken: list[Broken]


@dataclass(frozen=True)
class Encoding:
    """What a folder of codes is made from: the same for all its blocks, and on every machine.

    Attributes:
        source: of the images.
        images_per_block: of image files, at least of rows.
        blocks: how many there are.
        listing: digest of the blocks' names.
        hasher: digest of the hasher's file.
        code_length: in bits.

    Example:
        >>> Encoding(Source("pictures"), 1024, blocks=3, listing="1a2b", hasher="3c4d", code_length=48).source.root
        'pictures'
    """

    source: Source
    images_per_block: int
    blocks: int
    listing: str
    hasher: str
    code_length: int


class CodeFolder:
    """Codes of many images, on a disk or in an object store.

    It has ``hasher.safetensors``, ``encoding.json`` and a file ``codes-<block>.safetensors`` for each block: names,
    labels and packed codes, and in its metadata the broken images and a digest of all that. A block has the same bytes
    whoever makes it, so it does no harm if two do.

    Args:
        address: folder, on a disk or in an object store.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     codes = CodeFolder(folder)
        ...     codes.write(0, "listing", CodeBlock(["1.png"], np.array([[7]], np.uint8), ["cat"], []))
        ...     sorted(codes.done()), codes.read(0, "listing").names
        ([0], ['1.png'])
    """

    def __init__(self, address: str | Path) -> None:
        self.address = str(address)

    def begin(self, encoding: Encoding, hasher: bytes) -> None:
        """Store the hasher and what the codes are made from, or compare it with what is there.

        Raises:
            InputError: the folder has codes of another hasher or of other images, or other files.
        """
        there = self.encoding_if_begun()
        if there is None:
            names = {name for name in names_in(self.address) if not name.startswith(".")}
            # One that was killed before it began has the hasher alone.
            if names and (names != {HASHER} or read_bytes(joined(self.address, HASHER)) != hasher):
                raise InputError(f"{self.address} is not empty and has no codes: name another folder")
            write_whole(joined(self.address, HASHER), hasher)
            content = json.dumps({"format": FORMAT, **asdict(encoding)}, indent=1)
            write_whole(joined(self.address, MANIFEST), content.encode())
        elif there.hasher != encoding.hasher:
            raise InputError(f"{self.address} has codes of another hasher: encode into another folder")
        elif (there.listing, there.blocks) != (encoding.listing, encoding.blocks):
            raise InputError(
                f"{self.address} has codes of other images, those of {there.source.address} when it was begun: encode "
                "into another folder"
            )

    def encoding_if_begun(self) -> Encoding | None:
        """Read what the codes are made from; None for a folder that has none.

        Raises:
            InputError: it is of another version, or damaged.
        """
        try:
            content = json.loads(read_bytes(joined(self.address, MANIFEST)))
            if content.pop("format") != FORMAT:
                raise ValueError("its format is another one")
            return Encoding(source=Source(**content.pop("source")), **content)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"{self.address}/{MANIFEST} is damaged ({error}): encode into another folder") from error

    @cached_property
    def encoding(self) -> Encoding:
        """What the codes are made from.

        Raises:
            InputError: there are no codes.
        """
        found = self.encoding_if_begun()
        if found is None:
            raise InputError(f"{self.address} has no codes: make them by `deephash-pipeline encode`")
        return found

    def hasher(self, device: str = "auto") -> ImageHasher:
        """Load the hasher that makes the codes.

        Raises:
            InputError: there are no codes, or it is damaged.
        """
        assert self.encoding.hasher, "a folder that was begun has a hasher"
        if not is_remote(self.address):
            return ImageHasher.load(local_path(joined(self.address, HASHER)), device)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, HASHER)
            path.write_bytes(read_bytes(joined(self.address, HASHER)))
            return ImageHasher.load(path, device)

    def done(self) -> set[int]:
        """Return the numbers of the blocks that are there."""
        found = map(BLOCK.fullmatch, names_in(self.address))
        return {int(match[1]) for match in found if match}

    def stamp(self, number: int) -> str | None:
        """Read what the files of a block were like when it was made, see `Block`; None if that is not known."""
        try:
            with reached(self._block(number)) as (filesystem, path), filesystem.open(path, "rb") as file:
                header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
                return str(json.loads(header["__metadata__"][KEY])["stamp"]) or None
        except (OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError):
            # Whoever reads its codes says what is wrong with it.
            return None

    def write(self, number: int, listing: str, block: CodeBlock, stamp: str = "") -> None:
        """Write a block, whole or not at all.

        Args:
            number: position of the block in the listing.
            listing: digest of the listing that it is of.
            block: what it has.
            stamp: what its files are like, see `Block`.
        """
        tensors: dict[str, NDArray[Any]] = {"codes": block.codes}
        tensors["names"], tensors["name_ends"] = _packed(block.names)
        tensors["labels"], tensors["label_ends"] = _packed([label or "" for label in block.labels])
        content: dict[str, Any] = {"block": number, "broken": block.broken, "format": FORMAT, "listing": listing}
        content["stamp"] = stamp
        content["digest"] = arrays_digest(tensors, content)
        # One entry, because safetensors keeps no order among several, and equal blocks are to be equal files.
        made = safetensors.numpy.save(tensors, {KEY: json.dumps(content, sort_keys=True)})
        write_whole(self._block(number), made)

    def read(self, number: int, listing: str | None = None) -> CodeBlock:
        """Read a block.

        Raises:
            InputError: it is not there, is damaged, or is of another listing.
        """
        address = self._block(number)
        remedy = f"remove it and run `deephash-pipeline encode ... -o {self.address}` again"
        try:
            data = read_bytes(address)
            tensors = safetensors.numpy.load(data)
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            content = json.loads(header["__metadata__"][KEY])
            if content.pop("digest") != arrays_digest(tensors, content):
                raise ValueError("its content is not what was written")
            if (content["block"], content["listing"]) != (number, listing or self.encoding.listing):
                raise ValueError("it is of other images")
        except FileNotFoundError:
            raise InputError(
                f"{self.address} lacks block {number}: run `deephash-pipeline encode ... -o {self.address}` again"
            ) from None
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
            raise InputError(f"{address} is damaged ({error}): {remedy}") from error
        labels = [label or None for label in _unpacked(tensors["labels"], tensors["label_ends"])]
        names = _unpacked(tensors["names"], tensors["name_ends"])
        return CodeBlock(names, tensors["codes"], labels, [Broken(*broken) for broken in content["broken"]])

    def __iter__(self) -> Iterator[CodeBlock]:
        """Read all blocks in order; see `read`."""
        for number in range(self.encoding.blocks):
            yield self.read(number)

    def sweep(self) -> None:
        """Remove what killed workers have left, once all blocks are there."""
        if not is_remote(self.address):
            for name in [name for name in names_in(self.address) if LEFTOVER.fullmatch(name)]:
                local_path(joined(self.address, name)).unlink(missing_ok=True)

    def _block(self, number: int) -> str:
        return joined(self.address, f"codes-{number:09d}.safetensors")


def _packed(texts: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def _unpacked(packed: NDArray[np.uint8], ends: NDArray[np.int64]) -> list[str]:
    data, starts = packed.tobytes(), [0, *ends[:-1].tolist()]
    return [data[start:end].decode() for start, end in zip(starts, ends.tolist(), strict=True)]
