"""A folder of codes: a file for each block of a source, named by what it is of, and what all were made from."""

import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.stores import (
    TEMPORARY,
    is_remote,
    joined_address,
    local_path,
    names_in,
    read_bytes,
    write_whole,
)
from deephash_pipeline.encoding.listing import Source
from deephash_pipeline.provenance.arrays import arrays_digest

if TYPE_CHECKING:
    from deephash_pipeline.deephash import ImageHasher

CODE_FOLDER_FORMAT = 2
MANIFEST = "encoding.json"
HASHER_FILE = "hasher.safetensors"
BLOCK_FILE = re.compile(r"codes-([0-9a-f]{32})\.safetensors")
CODES_KEY = "deephash_pipeline.codes"


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
    """What a folder of codes is made from.

    Attributes:
        source: source of the images.
        images_per_block: number of image files, or the least number of rows.
        blocks: digests of its blocks, in order.
        hasher: digest of the hasher's file.
        code_length: code length in bits.

    Example:
        >>> Encoding(Source("pictures"), 1024, blocks=["1a2b"], hasher="3c4d", code_length=48).source.root
        'pictures'
    """

    source: Source
    images_per_block: int
    blocks: list[str]
    hasher: str
    code_length: int


class CodeFolder:
    """Codes of many images, on a disk or in an object store.

    It has ``hasher.safetensors``, ``encoding.json`` and a file ``codes-<digest of the block>.safetensors`` for each
    block: packed codes, and in its metadata names, labels, the broken images and a digest of all that. A block has the
    same bytes whoever makes it, so it does no harm if two do.

    Args:
        address: folder, on a disk or in an object store.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     codes = CodeFolder(folder)
        ...     codes.write("0a" * 16, CodeBlock(["1.png"], np.array([[7]], np.uint8), ["cat"], []))
        ...     len(codes.done()), codes.read("0a" * 16).names
        (1, ['1.png'])
    """

    def __init__(self, address: str | Path) -> None:
        self.address = str(address)

    def begin(self, encoding: Encoding, hasher: bytes) -> None:
        """Store the hasher and what the codes are made from; blocks of the same source may be others than before.

        Raises:
            InputError: the folder has codes of another hasher or of another source, or other files.
        """
        there = self.encoding_if_begun()
        if there is None:
            names = {name for name in names_in(self.address) if not name.startswith(".")}
            # One that was killed before it began has the hasher alone.
            if names and (names != {HASHER_FILE} or read_bytes(joined_address(self.address, HASHER_FILE)) != hasher):
                raise InputError(f"{self.address} is not empty and has no codes: name another folder")
            write_whole(joined_address(self.address, HASHER_FILE), hasher)
        elif there.hasher != encoding.hasher:
            raise InputError(f"{self.address} has codes of another hasher: encode into another folder")
        elif there.source != encoding.source:
            raise InputError(
                f"{self.address} has codes of other images, those of {there.source.address}: encode into another folder"
            )
        if there != encoding:
            content = json.dumps({"format": CODE_FOLDER_FORMAT, **asdict(encoding)}, indent=1)
            write_whole(joined_address(self.address, MANIFEST), content.encode())

    def encoding_if_begun(self) -> Encoding | None:
        """Read what the codes are made from; None for a folder that has none.

        Raises:
            InputError: it is of another version, or damaged.
        """
        try:
            content = json.loads(read_bytes(joined_address(self.address, MANIFEST)))
            if content.pop("format") != CODE_FOLDER_FORMAT:
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

    def hasher(self, device: str = "auto") -> "ImageHasher":
        """Load the hasher that makes the codes.

        Raises:
            InputError: there are no codes, or it is damaged.
        """
        from deephash_pipeline.deephash import ImageHasher  # noqa: PLC0415 - PyTorch takes seconds

        assert self.encoding.hasher, "a folder that was begun has a hasher"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, HASHER_FILE)
            path.write_bytes(read_bytes(joined_address(self.address, HASHER_FILE)))
            return ImageHasher.load(path, device)

    def done(self) -> set[str]:
        """Return the digests of the blocks that are there."""
        found = map(BLOCK_FILE.fullmatch, names_in(self.address))
        return {match[1] for match in found if match}

    def write(self, digest: str, block: CodeBlock) -> None:
        """Write a block, whole or not at all.

        Args:
            digest: digest of the block, see `Block`.
            block: contents of the file.
        """
        content = {"block": digest, "names": block.names, "labels": block.labels, "broken": block.broken}
        tensors = {"codes": block.codes}
        # One entry, because safetensors keeps no order among several, and equal blocks are to be equal files.
        metadata = {CODES_KEY: json.dumps({**content, "digest": arrays_digest(tensors, content)}, sort_keys=True)}
        write_whole(self._block(digest), safetensors.numpy.save(tensors, metadata))

    def read(self, digest: str) -> CodeBlock:
        """Read a block.

        Raises:
            InputError: it is not there, is damaged, or is another one.
        """
        address = self._block(digest)
        again = f"run `deephash-pipeline encode ... -o {self.address}` again"
        try:
            data = read_bytes(address)
            tensors = safetensors.numpy.load(data)
            header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
            content = json.loads(header["__metadata__"][CODES_KEY])
            if content.pop("digest") != arrays_digest(tensors, content):
                raise ValueError("its content is not what was written")
            if content["block"] != digest:
                raise ValueError("it is of other images")
        except FileNotFoundError:
            raise InputError(f"{self.address} lacks block {digest}: {again}") from None
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, safetensors.SafetensorError) as error:
            raise InputError(f"{address} is damaged ({error}): remove it and {again}") from error
        broken = [Broken(*each) for each in content["broken"]]
        return CodeBlock(content["names"], tensors["codes"], content["labels"], broken)

    def __iter__(self) -> Iterator[CodeBlock]:
        """Read all blocks in order; see `read`."""
        return map(self.read, self.encoding.blocks)

    def sweep(self) -> None:
        """Remove what killed workers have left, once all blocks are there."""
        if not is_remote(self.address):
            for name in [name for name in names_in(self.address) if TEMPORARY.fullmatch(name)]:
                local_path(joined_address(self.address, name)).unlink(missing_ok=True)

    def _block(self, digest: str) -> str:
        return joined_address(self.address, f"codes-{digest}.safetensors")
