"""Files in object stores, for datasets: saved by one request, loaded through a cache on this machine's disk."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deephash_pipeline.common.stores import reached, read_bytes, replacing, write_whole
from deephash_pipeline.provenance.digests import text_digest
from deephash_pipeline.provenance.manifest import manifest_path


def cache_folder() -> Path:
    """Give the folder that has copies: ``$XDG_CACHE_HOME/deephash_pipeline``, by default below ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deephash_pipeline"


def is_there(address: str) -> bool:
    """Ask the store whether a file is there."""
    with reached(address) as (filesystem, path):
        return bool(filesystem.isfile(path))


def fetched(address: str) -> Path:
    """Give a copy of a file, with its manifest beside it, if it has one.

    The copy is named after the address and the version of the file that the store has now, its ETag: what was fetched
    before is not fetched again, and what was replaced in the store is seen. Copies of former versions are removed; who
    has one mapped into memory keeps it.

    Raises:
        FileNotFoundError: it is not in the store.
        InputError: the store cannot be reached.
    """
    with reached(address) as (filesystem, path):
        about = filesystem.info(path)
        version = about.get("ETag") or about.get("etag") or f"{about.get('size')}{about.get('mtime', '')}"
        folder = cache_folder() / text_digest(address) / text_digest(str(version))
        copy = folder / path.rpartition("/")[2]
        if not copy.is_file():
            with replacing(copy) as temporary:
                filesystem.get_file(path, str(temporary))
            for former in folder.parent.iterdir():
                if former != folder:
                    with suppress(OSError):
                        for known in (former / copy.name, manifest_path(former / copy.name)):
                            known.unlink(missing_ok=True)
                        former.rmdir()
    try:
        write_whole(manifest_path(copy), read_bytes(_manifest_address(address)))
    except FileNotFoundError:
        manifest_path(copy).unlink(missing_ok=True)
    return copy


@contextmanager
def storing(address: str) -> Iterator[Path]:
    """Give a path on this disk; what is written there, and its manifest if there is one, are then stored.

    Each by one request, so that others see all of it or nothing: first the file, then its manifest. A run that is
    killed between the two leaves a file that is not the one of its manifest, and neither is accepted.

    Raises:
        InputError: the store cannot be reached.
    """
    with tempfile.TemporaryDirectory() as folder, reached(address) as (filesystem, path):
        local = Path(folder, path.rpartition("/")[2])
        yield local
        described = manifest_path(local)
        if not described.is_file() and filesystem.exists(described_there := str(manifest_path(Path(path)))):
            filesystem.rm_file(described_there)
        filesystem.put_file(str(local), path)
        if described.is_file():
            write_whole(_manifest_address(address), described.read_bytes())


def _manifest_address(address: str) -> str:
    return address.rpartition("/")[0] + "/" + manifest_path(Path(address)).name
