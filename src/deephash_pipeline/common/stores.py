"""Files on local disks and in object stores: written whole or not at all.

An address is a path, or a URL of a store that `fsspec <https://filesystem-spec.readthedocs.io>`_ knows, such as
``s3://bucket/images``. File systems are made where they are used and never stored, so that what has an address can be
sent to other processes.
"""

import asyncio
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.common.extras import installing
from deephash_pipeline.common.writing import cannot_write, require_regular

SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+]+)://")
STORE_PACKAGES = {"s3": "s3fs", "gs": "gcsfs", "abfs": "adlfs"}


def is_remote(address: str | Path) -> bool:
    """Tell whether an address is of an object store.

    Example:
        >>> is_remote("s3://bucket/images"), is_remote("data/images"), is_remote("file:///data")
        (True, False, False)
    """
    found = SCHEME.match(str(address))
    return found is not None and found[1] not in ("file", "local")


def refuse_remote(address: str | Path, what: str) -> None:
    """Raise InputError for what must be on a disk.

    Example:
        >>> refuse_remote("data/checkpoints", "checkpoints")
    """
    if is_remote(address):
        raise InputError(f"{address}: {what} cannot be in an object store: give a folder that all machines see")


def local_path(address: str | Path) -> Path:
    """Return the path of an address that is not remote.

    Example:
        >>> local_path("file:///data/images").as_posix()
        '/data/images'
    """
    found = SCHEME.match(str(address))
    return Path(str(address)[found.end() :] if found else address)


def joined_address(address: str | Path, name: str) -> str:
    """Return the address of a file below another address; a name that is an address itself stays.

    Example:
        >>> joined_address("s3://bucket/images/", "cat/1.png"), joined_address("images", "/data/1.png")
        ('s3://bucket/images/cat/1.png', '/data/1.png')
    """
    if is_remote(name) or os.path.isabs(name):
        return name
    return f"{str(address).rstrip('/')}/{name}" if is_remote(address) else os.path.join(local_path(address), name)


@contextmanager
def reached(address: str | Path, **options: Any) -> Iterator[tuple[Any, str]]:
    """Give the file system of an address, and its path there; what goes wrong with a store is one line.

    Args:
        address: address of a file or folder.
        options: options of the file system, as its package names them.

    Raises:
        InputError: the store's package is not installed, it cannot be reached, or refuses.
    """
    import fsspec  # noqa: PLC0415 - searching in codes wants none of it

    scheme = (SCHEME.match(str(address)) or ["", ""])[1]
    if is_remote(address) and not str(address).partition("://")[2].strip("/"):
        raise InputError(f"{address} names no bucket: give one, such as {scheme}://bucket/images")
    if is_remote(address):
        # Another machine writes there too; fsspec would answer from what it has listed before.
        options["use_listings_cache"] = False
    try:
        yield fsspec.core.url_to_fs(str(address), **options)
    except (FileNotFoundError, FileExistsError, InputError):
        raise
    except ImportError as error:
        remedy = (
            f"`{installing(STORE_PACKAGES[scheme])}`"
            if scheme in STORE_PACKAGES
            else "install the package that fsspec names"
        )
        raise InputError(f"{address} cannot be reached without a package ({error}): {remedy}") from error
    except Exception as error:
        if not is_remote(address) or not _of_the_store(error):
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{address} cannot be reached ({reason}): check its name, credentials and endpoint") from error


def _of_the_store(error: Exception) -> bool:
    libraries = ("botocore", "aiobotocore", "aiohttp", "gcsfs", "azure", "google")
    timed_out = isinstance(error, TimeoutError | asyncio.TimeoutError)
    unknown_scheme = isinstance(error, ValueError) and "Protocol not known" in str(error)
    return isinstance(error, OSError) or timed_out or unknown_scheme or type(error).__module__.startswith(libraries)


def exists(address: str | Path) -> bool:
    """Tell whether there is a file, or anything below an address."""
    if not is_remote(address):
        return local_path(address).exists()
    with reached(address) as (filesystem, path):
        return bool(filesystem.exists(path))


def is_folder(address: str | Path) -> bool:
    """Tell whether there is anything below an address."""
    if not is_remote(address):
        return local_path(address).is_dir()
    with reached(address) as (filesystem, path):
        return bool(filesystem.isdir(path))


def read_bytes(address: str | Path) -> bytes:
    """Read a whole file.

    Raises:
        FileNotFoundError: it is not there.
        InputError: see `reached`.
    """
    if not is_remote(address):
        return local_path(address).read_bytes()
    [content] = read_all([str(address)])
    if content is None:
        raise FileNotFoundError(str(address))
    return content


def read_all(addresses: Sequence[str]) -> list[bytes | None]:
    """Read whole files of one store side by side, each by one request; None for one that is not there.

    Raises:
        InputError: see `reached`.
    """
    import fsspec  # noqa: PLC0415 - as in `reached`

    # s3fs would first ask for a file's size, to fetch a large one in parts.
    options = {"max_concurrency": 1} if addresses[0].startswith("s3:") else {}
    with reached(addresses[0], **options) as (filesystem, _):
        paths = [fsspec.core.strip_protocol(address) for address in addresses]
        # Unlike `cat`, it takes brackets in a name for what they are.
        contents = filesystem.cat_ranges(paths, None, None, on_error="return")
        for content in contents:
            if isinstance(content, Exception) and not isinstance(content, FileNotFoundError):
                raise content
        return [content if isinstance(content, bytes) else None for content in contents]


def write_whole(address: str | Path, content: bytes) -> None:
    """Write a file such that others see all of it or nothing, however this process ends.

    To a store it is one request, or above a hundred megabytes one upload in parts that becomes visible at its end; on
    a disk see `replacing`.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     write_whole(f"{folder}/codes", b"1010")
        ...     read_bytes(f"{folder}/codes")
        b'1010'
    """
    if not is_remote(address):
        place = local_path(address)
        try:
            with replacing(place) as temporary:
                temporary.write_bytes(content)
        except OSError as error:
            raise cannot_write(place, error) from error
        return
    with reached(address) as (filesystem, path):
        filesystem.pipe_file(path, content)


def write_all(contents: Mapping[Path, bytes]) -> None:
    """Write several files on a disk: where one cannot be written, as where the disk is full, all stay as they are.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     write_all({Path(folder, "a"): b"1", Path(folder, "b"): b"2"})
        ...     sorted(names_in(folder))
        ['a', 'b']
    """
    with ExitStack() as stack:
        for path, content in contents.items():
            temporary = stack.enter_context(replacing(path))
            temporary.write_bytes(content)
            flush(temporary)


def names_in(address: str | Path) -> Iterator[str]:
    """Yield the names of what is directly in a folder, in no order; none where there is no folder."""
    try:
        if not is_remote(address):
            with os.scandir(local_path(address)) as entries:
                yield from (entry.name for entry in entries)
            return
        with reached(address) as (filesystem, path):
            yield from (name.rstrip("/").rpartition("/")[2] for name in filesystem.ls(path, detail=False))
    except FileNotFoundError:
        return


def stamp_of(path: str | Path) -> str | None:
    """Size and time of change of a file, which differ where its content does; None if it is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return f"{status.st_size}:{status.st_mtime_ns}"


TEMPORARY = re.compile(r"\.[^.].*\..+-[0-9a-f]{32}(\..*)?")
"""Names of files that are being written, as `temporary_name` gives them."""


def temporary_name(path: Path) -> Path:
    """Name a file beside `path` that no other process on any machine writes: containers share numbers of processes."""
    return path.with_name(f".{path.stem}.{socket.gethostname()}-{uuid4().hex}{path.suffix}")


@contextmanager
def replacing(path: Path, flush_folder: bool = True) -> Iterator[Path]:
    """Give a temporary name in the folder of `path`; what is written there replaces `path` once it is on the disk.

    If writing fails, nothing is left of it. The file gets the mode that the umask asks for, whatever wrote it.
    """
    require_regular(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(path)
    try:
        yield temporary
        # safetensors gives its files to their owner alone.
        temporary.chmod(0o666 & ~_umask())
        flush(temporary)
        temporary.replace(path)
        if flush_folder:
            flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _umask() -> int:
    """Read the umask, which can only be read by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def flush(path: Path) -> None:
    """Wait until a file, or the entries of a folder, are on the disk, where they survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
