"""What steps read and make: files with manifests, whatever files there are, and what no step makes."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.provenance.digests import file_digest, text_digest
from deephash_pipeline.provenance.lineage import Kind, Lineage, State
from deephash_pipeline.provenance.manifest import DamagedError, Manifest, Origin, read_manifest, verify

MISSING_VALUE, NOT_THERE = "none", "is not there"
NO_GRAPH = Lineage((), lambda name: None)
"""For files that another graph has made: they are compared with their manifests alone."""


@dataclass(frozen=True)
class StoredFile:
    """An artefact that is one file with a manifest.

    Attributes:
        path: where it lies, as it is shown.
        fetch: gives the path of a copy, if it lies in an object store.
        check: raises InputError if what lies beside the file is damaged, such as the codes of an index.
    """

    path: Path
    fetch: Callable[[], Path] | None = field(default=None, compare=False)
    check: Callable[[], object] | None = field(default=None, compare=False)

    def digest_now(self, lineage: Lineage) -> str:
        """Take it from the manifest, which was compared with the file when that was read."""
        manifest = self._manifest()
        if manifest is not None:
            return manifest.digest
        with suppress(OSError):
            return file_digest(self._local())
        return MISSING_VALUE

    def origin(self) -> Origin | None:
        """Read it from the manifest."""
        manifest = self._manifest()
        return manifest.origin if manifest else None

    def state(self, lineage: Lineage, name: str) -> State:
        """Compare file, manifest and step."""
        try:
            path = self._local()
            manifest = read_manifest(path)
            if not path.is_file():
                return State(Kind.MISSING, NOT_THERE, manifest.digest if manifest else None)
            if manifest is None:
                return State(Kind.UNRECORDED, "has no manifest that says what it was made from")
            if manifest.name != name:
                return State(Kind.DAMAGED, f"has the manifest of `{manifest.name}`")
            verify(path, manifest)
            if self.check is not None:
                self.check()
        except FileNotFoundError:
            return State(Kind.MISSING, NOT_THERE)
        except InputError as error:
            return State(Kind.DAMAGED, f"is damaged ({error})")
        except OSError as error:
            return State(Kind.DAMAGED, f"cannot be read ({error})")
        return lineage.compare(name, manifest)

    def _local(self) -> Path:
        return self.path if self.fetch is None else self.fetch()

    def _manifest(self) -> Manifest | None:
        try:
            return read_manifest(self._local())
        except (DamagedError, FileNotFoundError):
            return None


@dataclass(frozen=True)
class FoundFiles:
    """Whatever files a pattern finds: an artefact of any number of files, each with a manifest.

    Attributes:
        path: the folder.
        files: finds them, in the order of their paths.
        name_of: gives the name that a file's manifest must have, and whether this graph makes it.
    """

    path: Path
    files: Callable[[], Iterable[Path]] = field(compare=False)
    name_of: Callable[[Path], tuple[str | None, bool]] = field(compare=False)

    def origin(self) -> Origin | None:
        """None: each has its own."""
        return None

    def state(self, lineage: Lineage, name: str) -> State:
        """Compare each file with its manifest, and those that this graph makes with the step."""
        for path, _, state in self.faults(lineage):
            reason = f"has {path}, which {state.reason}"
            return State(state.kind, reason, None, f"`{name}`, which {reason}")
        return State(Kind.FRESH, "", self.digest_now(lineage))

    def faults(self, lineage: Lineage) -> Iterator[tuple[Path, str, State]]:
        """Yield the files that are not fresh, with the names of their datasets and what is to be said of them."""
        for path in self.files():
            own, is_ours = self.name_of(path)
            manifest = StoredFile(path)._manifest()
            name = own or (manifest.name if manifest else "")
            state = lineage.state(name) if is_ours else StoredFile(path).state(NO_GRAPH, name)
            if state.kind is not Kind.FRESH:
                yield path, name, state

    def digest_now(self, lineage: Lineage) -> str:
        """Digest names and contents."""
        known = (
            f"{path.relative_to(self.path).as_posix()}\0{StoredFile(path).digest_now(lineage)}" for path in self.files()
        )
        return text_digest("\0".join(known))


@dataclass(frozen=True)
class Source:
    """What no step makes, such as raw images.

    Attributes:
        path: where it lies.
        digest: computes that of its content; None where it is not there.
    """

    path: Path
    digest: Callable[[], str | None] = field(compare=False)

    def origin(self) -> Origin | None:
        """None: it is where everything begins."""
        return None

    def state(self, lineage: Lineage, name: str) -> State:
        """Digest its content."""
        digest = self.digest()
        return State(Kind.MISSING, NOT_THERE) if digest is None else State(Kind.FRESH, "", digest)

    def digest_now(self, lineage: Lineage) -> str:
        """Digest its content."""
        return self.digest() or MISSING_VALUE
