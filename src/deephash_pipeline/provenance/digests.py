"""Digests of files: XXH3 with 128 bits, which finds accidents at the speed of memory."""

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import xxhash

CHUNK_BYTES = 2**22
REMEMBERED_BYTES = 2**24
"""Smaller files are read whenever their digest is asked for, larger ones once in a process and when they have changed:
images and features are mapped into memory and read in parts."""


def text_digest(text: str) -> str:
    """Digest a text.

    Example:
        >>> text_digest("itq")
        '20a78e6f3150b49c5e27fa9f5c6c45e1'
    """
    return xxhash.xxh3_128_hexdigest(text.encode())


_REMEMBERED: dict[tuple[int, ...], str] = {}


def file_digest(path: Path) -> str:
    """Digest the content of a file; of a large one that has not changed since, from memory.

    Raises:
        OSError: it cannot be read.
    """
    status = path.stat()
    key = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    digest = _REMEMBERED.get(key) or content_digest(path)
    if status.st_size >= REMEMBERED_BYTES:
        _REMEMBERED[key] = digest
    return digest


def files_digest(root: Path, names: Iterable[str], memory: Path) -> str:
    """Digest names and contents of many files; from memory as long as none has changed, appeared or vanished.

    Args:
        root: folder of the files.
        names: paths below it.
        memory: file that remembers the digest; where it is damaged or cannot be written, files are read.

    Raises:
        OSError: a file cannot be read.
    """
    names = list(names)
    listing = xxhash.xxh3_128()
    for name in names:
        status = (root / name).stat()
        listing.update(f"{name}\0{[status.st_size, status.st_mtime_ns, status.st_ino]}\0".encode())
    state = [listing.hexdigest()]
    with suppress(OSError, ValueError):
        known = json.loads(memory.read_bytes())
        if isinstance(known, dict) and known.get("state") == state and isinstance(known.get("digest"), str):
            return str(known["digest"])
    digest = xxhash.xxh3_128()
    for name in names:
        digest.update(f"{name}\0{content_digest(root / name)}\0".encode())
    with suppress(OSError):
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text(json.dumps({"state": state, "digest": digest.hexdigest()}), encoding="utf-8")
    return digest.hexdigest()


def content_digest(path: Path) -> str:
    """Digest the content of a file, and read it for that.

    Raises:
        OSError: it cannot be read.
    """
    digest = xxhash.xxh3_128()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
