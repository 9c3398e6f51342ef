"""The manifest beside an artefact: what it is, and what it was made from and by."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deephash_pipeline.common.errors import InputError
from deephash_pipeline.provenance.digests import file_digest, text_digest

SUFFIX = ".provenance.json"
FORMAT = 1
SEAL = ', "seal": "'
REMEDY = "make it again with `kedro run --pipelines=full`"


class DamagedError(InputError):
    """An artefact or its manifest is not what was written."""


@dataclass(frozen=True)
class Origin:
    """What an artefact is made from and by.

    Attributes:
        node: node that makes it.
        sources: module -> digest of its source, for the modules that the node reaches.
        inputs: name -> digest of the artefacts that the node reads.
        parameters: dotted name -> value of those that the node receives.
        ancestors: name -> digest of the artefacts that the inputs were made from, up to the raw images.
        inherited: dotted name -> value of the parameters that their nodes received.
        code: version and commit of the package, versions of Python and PyTorch.
        command: command line that was given.
        resolved: dotted name -> what a parameter of ``auto`` was where the node ran, or one of those before it.
    """

    node: str
    sources: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    ancestors: Mapping[str, str] = field(default_factory=dict)
    inherited: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    resolved: Mapping[str, str] = field(default_factory=dict)

    @property
    def known_parameters(self) -> dict[str, Any]:
        """Dotted name -> value of all parameters that the artefact owes itself to; ``auto`` as what it was.

        Example:
            >>> Origin("train", parameters={"precision": "auto"}, resolved={"precision": "float32"}).known_parameters
            {'precision': 'float32'}
        """
        return {**self.inherited, **self.parameters, **self.resolved}


@dataclass(frozen=True)
class Manifest:
    """What is known of an artefact.

    Attributes:
        name: name of the dataset in the catalog.
        size: size of its file, in bytes.
        digest: digest of the content of its file.
        origin: what it was made from and by.
    """

    name: str
    size: int
    digest: str
    origin: Origin


def manifest_path(path: Path) -> Path:
    """Name the manifest of a file.

    Example:
        >>> manifest_path(Path("itq/b12/codes.npz")).as_posix()
        'itq/b12/codes.npz.provenance.json'
    """
    return path.with_name(path.name + SUFFIX)


def describe(name: str, path: Path, origin: Origin) -> Manifest:
    """Make the manifest of the file at `path`, which need not have its final name yet."""
    return Manifest(name, path.stat().st_size, file_digest(path), origin)


def manifest_text(manifest: Manifest) -> str:
    """Write a manifest as JSON, sealed with the digest of its own text; equal manifests are equal texts."""
    content = {"format": FORMAT, **vars(manifest), "origin": vars(manifest.origin)}
    text = f'{{"content": {json.dumps(content, sort_keys=True)}'
    return f'{text}{SEAL}{text_digest(text)}"}}\n'


def read_manifest(path: Path) -> Manifest | None:
    """Read the manifest of the artefact at `path`; None if it has none.

    Raises:
        DamagedError: there is one, but it is not what was written.
    """
    try:
        text = manifest_path(path).read_bytes()
    except FileNotFoundError:
        return None
    try:
        sealed, _, _seal = text.decode().rpartition(SEAL)
        if text.decode() != f'{sealed}{SEAL}{text_digest(sealed)}"}}\n':
            raise ValueError("its seal is broken")
        content = json.loads(text)["content"]
        if content.pop("format") != FORMAT:
            raise ValueError("its format is another one")
        return Manifest(**{**content, "origin": Origin(**content["origin"])})
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedError(f"the manifest of {path} is damaged: {REMEDY}") from error


def verify(path: Path, manifest: Manifest) -> None:
    """Compare a file with its manifest.

    Raises:
        DamagedError: it is another one, or not what was written.
    """
    size = path.stat().st_size
    if size != manifest.size:
        raise DamagedError(f"{path} is damaged, it has {size:,} bytes instead of {manifest.size:,}: {REMEDY}")
    if file_digest(path) != manifest.digest:
        raise DamagedError(f"{path} is damaged, its content is not what its manifest says: {REMEDY}")
