"""What stands for the content of files: XXH3 with 128 bits, which finds accidents at the speed of memory."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import xxhash

CHUNK_BYTES = 2**22
REMEMBERED_BYTES = 2**24
"""Smaller files are read whenever their digest is asked for. That of a larger one is remembered beside it until its
size, time of change or inode differ, because images and features are mapped into memory and read in parts."""
REMEMBERED = ".verified"

_reading_everything = False


@contextmanager
def everything_read(wanted: bool = True) -> Iterator[None]:
    """Within it no digest is taken from memory: every file is read whole, once more."""
    global _reading_everything  # noqa: PLW0603 - a context variable would not reach the threads of a runner
    before, _reading_everything = _reading_everything, wanted
    try:
        yield
    finally:
        _reading_everything = before


def text_digest(text: str) -> str:
    """Digest a text.

    Example:
        >>> text_digest("itq")
        '20a78e6f3150b49c5e27fa9f5c6c45e1'
    """
    return xxhash.xxh3_128_hexdigest(text.encode())


def file_digest(path: Path) -> str:
    """Digest the content of a file; of a large one that has not changed since, from memory.

    Raises:
        OSError: it cannot be read.
    """
    if path.stat().st_size < REMEMBERED_BYTES:
        return content_digest(path)
    return remembered(path.with_name(path.name + REMEMBERED), _state(path), lambda: content_digest(path))


def remember(path: Path, digest: str) -> None:
    """Spare the next `file_digest` of a large file the reading."""
    if path.stat().st_size >= REMEMBERED_BYTES:
        _write_memory(path.with_name(path.name + REMEMBERED), _state(path), digest)


def files_digest(root: Path, names: Iterable[str], memory: Path) -> str:
    """Digest names and contents of many files; from memory as long as none has changed, appeared or vanished.

    Args:
        root: folder of the files.
        names: paths below it.
        memory: file that remembers the digest.

    Raises:
        OSError: a file cannot be read.
    """
    names = list(names)
    listing = xxhash.xxh3_128()
    for name in names:
        listing.update(f"{name}\0{_state(root / name)}\0".encode())

    def contents() -> str:
        digest = xxhash.xxh3_128()
        for name in names:
            digest.update(f"{name}\0{content_digest(root / name)}\0".encode())
        return digest.hexdigest()

    return remembered(memory, [listing.hexdigest()], contents)


def remembered(memory: Path, state: list[int] | list[str], digest: Callable[[], str]) -> str:
    """Give the digest that `memory` has for this state, or compute it and let `memory` have it.

    The memory is no result: where it cannot be written, or is not what was written, the digest is computed.
    """
    if not _reading_everything:
        with suppress(OSError, ValueError):
            known = json.loads(memory.read_bytes())
            if isinstance(known, dict) and known.get("state") == state and isinstance(known.get("digest"), str):
                return str(known["digest"])
    computed = digest()
    _write_memory(memory, state, computed)
    return computed


def _write_memory(memory: Path, state: list[int] | list[str], digest: str) -> None:
    with suppress(OSError):
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text(json.dumps({"state": state, "digest": digest}), encoding="utf-8")


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ino]


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
