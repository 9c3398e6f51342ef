"""What steps read and make: files with manifests, whatever files there are, and what no step makes."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from deephash_pipeline.provenance.digests import file_digest, text_digest
from deephash_pipeline.provenance.lineage import Kind, Lineage, State
from deephash_pipeline.provenance.manifest import DamagedError, Origin, read_manifest, verify

MISSING_VALUE = "none"
NO_GRAPH = Lineage((), {})
"""For files that another graph has made: they are compared with their manifests alone."""


@dataclass(frozen=True)
class StoredFile:
    """An artefact that is one file with a manifest."""

    path: Path

    def digest_now(self, lineage: Lineage) -> str:
        """Take it from the manifest, which was compared with the file when that was read."""
        with suppress(DamagedError):
            manifest = read_manifest(self.path)
            if manifest is not None:
                return manifest.digest
        with suppress(OSError):
            return file_digest(self.path)
        return MISSING_VALUE

    def origin(self) -> Origin | None:
        """Read it from the manifest."""
        try:
            manifest = read_manifest(self.path)
        except DamagedError:
            return None
        return manifest.origin if manifest else None

    def state(self, lineage: Lineage, name: str) -> State:
        """Compare file, manifest and step."""
        try:
            manifest = read_manifest(self.path)
            if not self.path.is_file():
                return State(Kind.MISSING, "is not there", manifest.digest if manifest else None)
            if manifest is None:
                return State(Kind.UNRECORDED, "has no manifest that says what it was made from")
            if manifest.name != name:
                return State(Kind.DAMAGED, f"has the manifest of `{manifest.name}`")
            verify(self.path, manifest)
        except DamagedError as error:
            return State(Kind.DAMAGED, f"is damaged ({error})")
        except OSError as error:
            return State(Kind.DAMAGED, f"cannot be read ({error})")
        return lineage.compare(name, manifest)


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
            name = own or _manifest_name(path)
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
        return State(Kind.MISSING, "is not there") if digest is None else State(Kind.FRESH, "", digest)

    def digest_now(self, lineage: Lineage) -> str:
        """Digest its content."""
        return self.digest() or MISSING_VALUE


def _manifest_name(path: Path) -> str:
    try:
        manifest = read_manifest(path)
    except DamagedError:
        return ""
    return manifest.name if manifest else ""
