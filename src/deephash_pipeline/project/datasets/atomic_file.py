"""Datasets that are one file, on a disk or in an object store, which appears under its name whole or not at all."""

import os
import tempfile
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from kedro.io import AbstractDataset, DatasetError

from deephash_pipeline.common.stores import exists, is_remote, reached, read_bytes, replacing, write_whole
from deephash_pipeline.provenance import Origin
from deephash_pipeline.provenance.digests import text_digest
from deephash_pipeline.provenance.manifest import DamagedError, Manifest, checked, manifest_path, manifest_text


def cache_folder() -> Path:
    """Give the folder that has copies: ``$XDG_CACHE_HOME/deephash_pipeline``, by default below ``~/.cache``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "deephash_pipeline"


def local_copy(address: str) -> Path:
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


Content = TypeVar("Content")


class AtomicFileDataset(AbstractDataset[Content, Content], Generic[Content]):
    """A file that is written under a temporary name, flushed to disk and then renamed.

    A subclass says how to read and write one file; a run killed while writing leaves the former file, or none. In a
    run the file gets a manifest that says what it was made from; a file that has one is compared with it when it is
    read. A file in an object store is written by one request, and read from a copy on this machine's disk.

    Args:
        filepath: where the file lies, relative to the project, or an address such as ``s3://bucket/codes.npz``.
        metadata: metadata for Kedro-Viz (``layer``).

    Attributes:
        filepath: where the file lies, unless it is in an object store.
        remote: its address in an object store; None on a disk.
        form: what the catalog says of how the file is written and read.
    """

    form: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, filepath: str, metadata: dict[str, Any] | None = None) -> None:
        # By the second name Kedro-Viz looks for the size of the file.
        self.filepath = self._filepath = Path(filepath)
        self.remote = filepath if is_remote(filepath) else None
        self._made_as: tuple[str, Origin] | None = None
        self.metadata = metadata

    def expect(self, name: str, origin: Origin) -> None:
        """Have the next content that is saved recorded as the dataset `name`, made from `origin`."""
        self._made_as = (name, origin)

    def local(self) -> Path:
        """Give the path of the file; of one in an object store, that of a copy.

        Raises:
            FileNotFoundError: it is not in the store.
        """
        return local_copy(self.remote) if self.remote else self.filepath

    def check(self, path: Path | None = None) -> Manifest | None:
        """Compare the file with its manifest.

        Args:
            path: `local`, if it is known.

        Returns:
            The manifest; None without one.

        Raises:
            FileNotFoundError: the file is not there.
            InputError: it is not what was written.
        """
        path = path or self.local()
        try:
            return checked(path)
        except DamagedError as error:
            raise DamagedError(str(error).replace(str(path), self.remote or str(path))) from None

    @abstractmethod
    def _read(self, path: Path) -> Content:
        """Read the whole content from `path`."""

    @abstractmethod
    def _write(self, path: Path, content: Content) -> None:
        """Write the whole content to `path`."""

    def load(self) -> Content:
        """Read the file.

        Raises:
            DatasetError: the file is not there; the message says what makes it.
            InputError: it is not what its manifest says.
        """
        if not self._exists():
            place = self.remote or self.filepath
            raise DatasetError(f"{place} is not there: run the stage that makes it, or `kedro run --pipelines=full`")
        path = self.local()
        self.check(path)
        return self._read(path)

    def save(self, content: Content) -> None:
        """Write the file under a temporary name, and its manifest likewise; then rename both.

        Killed between the two, a run leaves a file that is not the one of its manifest: neither is accepted.
        """
        made_as, self._made_as = self._made_as, None
        described = manifest_path(self.filepath)
        with ExitStack() as stack:
            if self.remote:
                path = stack.enter_context(storing(self.remote))
                described = manifest_path(path)
            elif made_as is None:
                described.unlink(missing_ok=True)
                path = stack.enter_context(replacing(self.filepath))
            else:
                # Both lie in one folder, which is flushed once.
                described = stack.enter_context(replacing(described))
                path = stack.enter_context(replacing(self.filepath, flush_folder=False))
            self._write(path, content)
            if made_as is not None:
                described.write_text(manifest_text(made_as[0], path, made_as[1]), encoding="utf-8")

    def _exists(self) -> bool:
        return exists(self.remote or self.filepath)

    def _describe(self) -> dict[str, Any]:
        return {"filepath": self.remote or str(self.filepath)}
